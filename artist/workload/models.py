"""The catalogue of models: from an architecture to one training iteration.

A row names how the network is built and how it is trained unless a spec says otherwise
(`artist.workload.spec`). Compute times come from `artist.workload.gpus`, collectives
from `artist.workload.parallel`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from artist.errors import UnknownNameError
from artist.workload.catalogue import ROWS, Model
from artist.workload.gpus import A100, Gpu, Precision, gpu
from artist.workload.layers import Degrees, Workload
from artist.workload.operators import Operator, Role
from artist.workload.parallel import Division, data_parallel, divided, fully_sharded
from artist.workload.spec import HELP, Settings, parse, refuse, text_of

__all__ = ["A100", "Gpu", "Model", "catalogue", "data_parallel", "workload"]

catalogue: Mapping[str, Model] = MappingProxyType({row.id: row for row in ROWS})


def _plain(name: str) -> str:
    return re.sub(r"[-_\s]", "", name).casefold()


_SPELLINGS = {_plain(name): row.id for row in ROWS for name in (row.id, *row.aliases)}


def model_names() -> list[str]:
    """The ids of all models, in the order of the catalogue."""
    return list(catalogue)


def canonical(name: str) -> str:
    """The one name of a spec: `BERT large` is `bert-large`, `VGG@gpu=A100,batch=64` is
    `vgg11@batch=64`.

    Raises:
        UnknownNameError: no model has this name, or a setting is wrong.
    """
    return _resolved(name)[0]


def workload(name: str) -> Workload:
    """One training iteration of a model (any spelling, with settings).

    Raises:
        ConfigError: unknown model, or settings that do not go together.
    """
    return _workload(canonical(name))


def operators(name: str) -> tuple[Operator, ...]:
    """The layers of a model (any spelling, with settings)."""
    _, row, chosen = _resolved(name)
    return row.operators(chosen)


def settings(name: str) -> Settings:
    """How a model (any spelling, with settings) is trained."""
    return _resolved(name)[2]


def parameters(name: str) -> int:
    """Trainable parameters of a model (any spelling, with settings)."""
    return sum(operator.parameters for operator in operators(name))


@dataclass(frozen=True, slots=True)
class ModelSummary:
    """What a listing shows of a model."""

    id: str
    summary: str
    paper: str
    parameters: int
    layers: int
    batch_per_gpu: int
    sequence: int | None
    parallelism: str


def summary(name: str) -> ModelSummary:
    """One line of the list of models."""
    spec, row, chosen = _resolved(name)
    found = _workload(spec)
    return ModelSummary(
        spec,
        row.summary,
        row.paper,
        parameters(spec),
        len(found.layers),
        chosen.batch,
        chosen.sequence,
        _division_text(chosen),
    )


@cache
def _resolved(name: str) -> tuple[str, Model, Settings]:
    """(canonical spec, row, settings)."""
    spelling, at, text = name.partition("@")
    identity = _SPELLINGS.get(_plain(spelling))
    if identity is None:
        raise UnknownNameError("model", spelling.casefold(), catalogue, HELP)
    row = catalogue[identity]
    chosen = parse(name, text, row.settings) if at else row.settings
    _check(name, row, chosen)
    return identity + text_of(chosen, row.settings), row, chosen


def _check(spec: str, row: Model, chosen: Settings) -> None:
    if chosen.sequence is not None and row.positions and chosen.sequence > row.positions:
        refuse(spec, f"sequence is {chosen.sequence}, but the model has {row.positions} positions")
    shared = chosen.tensor * chosen.stages
    if chosen.parallel == "fsdp" and (shared > 1 or chosen.experts is not None):
        refuse(spec, "fsdp does not go with tensor, stages or experts")
    if chosen.experts is not None and shared > 1:
        refuse(spec, "experts do not go with tensor or stages")
    if shared > 1 and not any(x.role is Role.ROW for x in row.operators(chosen)):
        refuse(spec, "only transformers divide into tensor or stages")
    if chosen.batch % chosen.microbatches:
        refuse(
            spec,
            f"a batch of {chosen.batch} does not divide into {chosen.microbatches} microbatches",
        )


@cache
def _workload(spec: str) -> Workload:
    _, row, chosen = _resolved(spec)
    precision = Precision(chosen.precision)
    device = gpu(chosen.gpu, precision, roofline=chosen.timing == "roofline")
    found = row.operators(chosen)
    if chosen.parallel == "fsdp":
        return fully_sharded(spec, found, chosen.batch, device)
    if chosen.tensor * chosen.stages > 1 or chosen.experts is not None:
        degrees = Degrees(chosen.tensor, chosen.stages, chosen.experts or 1)
        division = Division(chosen.batch, degrees, chosen.microbatches)
        return divided(spec, found, division, device)
    return data_parallel(spec, found, chosen.batch, device)


def _division_text(chosen: Settings) -> str:
    parts = [f"{name} {getattr(chosen, name)}" for name in ("tensor", "stages")]
    shown = [part for part in parts if not part.endswith(" 1")]
    if chosen.experts is not None:
        shown.append(f"experts {chosen.experts}")
    return ", ".join([chosen.parallel, *shown])
