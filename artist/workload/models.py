"""Models by name: from `resnet50` or `gpt2@batch=4` to one training iteration.

A name selects a row of the catalogue (`catalogue.py`), and settings after an `@` change how the
model is trained (`settings.py`). From the row's operators, the iteration follows with compute
times (`gpus.py`) and collectives (`parallelism.py`).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType

from artist.registry import UnknownNameError
from artist.workload.architectures.operators import Operator, Role
from artist.workload.catalogue import ROWS, Model
from artist.workload.divide import Plan, divide
from artist.workload.division.staged import Axes, Schedule, Sharded, axes_of_order
from artist.workload.gpus import ASSUMED_GPU, FASTER, FITTED, Gpu, Precision, fitted_gpu, gpu
from artist.workload.layers import Degrees, Workload
from artist.workload.parallelism import Division, data_parallel, divided, fully_sharded
from artist.workload.settings import Settings, parse, refuse, text_of

catalogue: Mapping[str, Model] = MappingProxyType({row.id: row for row in ROWS})


def _normalised(name: str) -> str:
    """A name without hyphens, underscores and spaces, in lower case."""
    return re.sub(r"[-_\s]", "", name).casefold()


_NAMES = [name for row in ROWS for name in (row.id, *row.aliases)]
_SPELLINGS = {_normalised(name): row.id for row in ROWS for name in (row.id, *row.aliases)}

# Comparing texts takes a time that grows with the product of their lengths.
_LONGEST = 60

# At least this share of the letters of two near names is the same.
_NEAR = 0.75


def model_names() -> list[str]:
    """The ids of all models, in the order of the catalogue."""
    return list(catalogue)


CHAKRA = "chakra:"
"""Prefix of a job's model that is a folder of execution traces: `chakra:DIR`."""


def is_graph(name: str) -> bool:
    """Whether a name is a folder of Chakra execution traces, which no catalogue knows."""
    return name.startswith(CHAKRA)


def canonical(name: str) -> str:
    """The one name that all spellings of a model share, with its settings.

    `BERT large` becomes `bert-large`, and `VGG@batch=32,gpu=A100` becomes `vgg11@gpu=a100`. The
    name of a folder of execution traces stays as it is.

    Raises:
        UnknownNameError: no model has this name, or a setting is wrong.
    """
    return name if is_graph(name) else _resolved(name)[0]


def canonical_if_known(name: str) -> str:
    """As `canonical`, or the name itself if the catalogue has no such model."""
    try:
        return canonical(name)
    except UnknownNameError:
        return name


def is_spelled(name: str) -> bool:
    """Whether a name, without its settings, is a spelling of a model.

    Unlike `canonical` it looks for no near names, which takes a hundred times as long.
    """
    return _normalised(name.partition("@")[0]) in _SPELLINGS


def nearest_model(name: str) -> str | None:
    """The model of the catalogue whose spelling is nearest to a name; None if none is near.

    >>> nearest_model("ResNet-53"), nearest_model("yolov3")
    ('resnet50', None)
    """
    plain = _normalised(name[:_LONGEST])
    near = difflib.get_close_matches(plain, _SPELLINGS, n=1, cutoff=_NEAR)
    return _SPELLINGS[near[0]] if near else None


def workload(name: str, gpu: str = ASSUMED_GPU) -> Workload:
    """One training iteration of a model (any spelling, with settings), on `gpu` if it names none.

    Raises:
        ConfigError: the model is unknown, or its settings do not go together.
    """
    return _workload(canonical(name), gpu)


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


def with_settings(name: str, text: str) -> str:
    """The canonical name of a model with settings that its name does not state itself.

    >>> with_settings("resnet50@batch=64", "batch=32,gpu=h100")
    'resnet50@batch=64,gpu=h100'

    Raises:
        UnknownNameError: no model has this name, or it has no such setting or value.
    """
    spelling, _, own = name.partition("@")
    stated = {part.partition("=")[0].strip() for part in own.split(",")}
    added = [part for part in text.split(",") if part.partition("=")[0].strip() not in stated]
    return canonical(f"{spelling}@{','.join(filter(None, [own, *added]))}") if added else name


@dataclass(frozen=True, slots=True)
class ModelSummary:
    """What `artist list models` shows of a model."""

    id: str
    summary: str
    paper: str
    parameters: int
    layers: int
    batch_per_gpu: int
    sequence: int | None
    parallelism: str


def summary(name: str) -> ModelSummary:
    """The summary of a model (any spelling, with settings)."""
    spec, row, chosen = _resolved(name)
    return ModelSummary(
        spec,
        row.summary,
        row.paper,
        parameters(spec),
        len(workload(spec).layers),
        chosen.batch,
        chosen.sequence,
        _division_text(chosen),
    )


@cache
def _resolved(name: str) -> tuple[str, Model, Settings]:
    """The canonical name, the row of the catalogue and the settings of a model."""
    if is_graph(name):
        refuse(name, "no model of the catalogue; artist latency takes it as --chakra DIR")
    spelling, at, text = name.partition("@")
    identity = _SPELLINGS.get(_normalised(spelling))
    if identity is None:
        # Never take the nearest spelling: it may be another model, which would change results.
        layers = "; artist latency takes a file of layers as --workload FILE"
        remedy = f"artist list models{layers * spelling.endswith('.txt')}"
        raise UnknownNameError("model", spelling, _NAMES, remedy, _NEAR)
    row = catalogue[identity]
    chosen = parse(name, text, row.settings) if at else row.settings
    _check(name, row, chosen)
    return identity + text_of(chosen, row.settings), row, chosen


def _check(spec: str, row: Model, chosen: Settings) -> None:
    """Refuse settings that do not suit the model or do not go together.

    Raises:
        UnknownNameError: names the reason.
    """
    if chosen.sequence is not None and row.positions and chosen.sequence > row.positions:
        refuse(spec, f"sequence is {chosen.sequence}, but the model has {row.positions} positions")
    if chosen.batch % chosen.microbatches:
        refuse(
            spec,
            f"a batch of {chosen.batch} does not divide into {chosen.microbatches} microbatches",
        )
    _check_timing(spec, chosen)
    if chosen.staged:
        said = chosen.parallel == "fsdp" != row.settings.parallel
        if said and chosen.sharding is not Sharded.ZERO3:
            refuse(
                spec, "fsdp cannot be combined with tensor, pipeline or expert; give sharded=zero3"
            )
        _check_staged(spec, row, chosen)
        return
    replica_gpus = chosen.tensor * chosen.stages
    if chosen.parallel == "fsdp" and (replica_gpus > 1 or chosen.experts is not None):
        refuse(spec, "fsdp cannot be combined with tensor, stages or experts")
    if chosen.experts is not None and replica_gpus > 1:
        refuse(
            spec,
            "experts cannot be combined with tensor or stages alone; give expert, pipeline or data",
        )
    # Only transformers have operators of a role that can be divided.
    if replica_gpus > 1 and not any(x.role is Role.ROW for x in row.operators(chosen)):
        refuse(spec, "only transformers divide into tensor or stages")


def _check_timing(spec: str, chosen: Settings) -> None:
    """Refuse a GPU or a precision that the chosen timing does not support."""
    fitted = chosen.timing == "fitted"
    if fitted and (chosen.gpu not in ("", *FITTED) or chosen.precision not in FASTER):
        refuse(
            spec,
            f"timing=fitted knows {', '.join(FITTED)} in {', '.join(FASTER)}, not "
            f"{f'{chosen.gpu} in ' if chosen.gpu else ''}{chosen.precision}; name others",
        )
    if not fitted and chosen.precision in (Precision.FP8, Precision.NVFP4):
        refuse(spec, f"precision={chosen.precision} needs timing=fitted")


def _check_staged(spec: str, row: Model, chosen: Settings) -> None:
    """Refuse settings of a job divided along axes that do not go together."""
    if chosen.stages > 1:
        refuse(spec, "stages is for the average stage of a pipeline alone; give pipeline")
    divided_by = chosen.tensor * chosen.pipeline * chosen.context
    if divided_by > 1 and not any(x.role is Role.ROW for x in row.operators(chosen)):
        refuse(spec, "only transformers divide into tensor, pipeline or context")
    if chosen.spread > 1 and (chosen.experts is None or chosen.experts % chosen.spread):
        held = "no experts" if chosen.experts is None else f"{chosen.experts} experts"
        refuse(spec, f"expert is {chosen.spread}, but the model has {held} to spread evenly")
    if (chosen.dispatch, chosen.overlap) != ("expert", "no") and chosen.spread == 1:
        refuse(spec, "dispatch and overlap apply to experts on several GPUs; give expert")
    if chosen.prefetch != row.settings.prefetch and chosen.sharding is Sharded.NO:
        refuse(spec, "prefetch applies to weights that replicas share; give sharded")
    interleaved = chosen.schedule == Schedule.INTERLEAVED
    if interleaved != (chosen.interleave > 1):
        refuse(
            spec, "schedule=interleaved goes with interleave, the chunks of a stage, of 2 or more"
        )
    if interleaved and (chosen.pipeline < 2 or chosen.microbatches % chosen.pipeline):
        refuse(
            spec,
            f"an interleaved schedule of {chosen.pipeline} stages needs a multiple of as many "
            f"microbatches, not {chosen.microbatches}",
        )


@cache
def _workload(spec: str, gpu: str) -> Workload:
    """The iteration of a canonical name; computed once."""
    _, row, chosen = _resolved(spec)
    chosen = replace(chosen, gpu=chosen.gpu or gpu)
    _check_timing(spec, chosen)
    device = _device(chosen)
    row_operators = row.operators(chosen)
    if chosen.staged:
        return divide(spec, row_operators, _plan(chosen), device)
    if chosen.parallel == "fsdp":
        return fully_sharded(spec, row_operators, chosen.batch, device)
    if chosen.tensor * chosen.stages > 1 or chosen.experts is not None:
        degrees = Degrees(chosen.tensor, chosen.stages, chosen.experts or 1)
        division = Division(chosen.batch, degrees, chosen.microbatches)
        return divided(spec, row_operators, division, device)
    return data_parallel(spec, row_operators, chosen.batch, device)


def _device(chosen: Settings) -> Gpu:
    """The GPU with the timing and the precision of these settings."""
    precision = Precision(chosen.precision)
    if chosen.timing == "fitted":
        return fitted_gpu(chosen.gpu, precision)
    return gpu(chosen.gpu, precision, roofline=chosen.timing == "roofline")


def _plan(chosen: Settings) -> Plan:
    """How a model with these settings is divided."""
    axes = Axes(
        chosen.tensor,
        chosen.context,
        chosen.pipeline,
        chosen.spread,
        chosen.data or None,
        axes_of_order(chosen.order),
        implied=not chosen.expert and chosen.spread > 1,
    )
    return Plan(
        axes,
        chosen.batch,
        chosen.microbatches,
        Schedule(chosen.schedule),
        chosen.interleave,
        chosen.sharding,
        chosen.prefetch,
        chosen.recompute,
        chosen.sequence_parallel,
        chosen.gradients,
        chosen.dispatch,
        chosen.overlap,
    )


def _division_text(chosen: Settings) -> str:
    """How the model is divided, as in `data, tensor 8, stages 12`."""
    names = ("tensor", "stages", "pipeline", "context", "expert")
    shown = [f"{name} {value}" for name in names if (value := getattr(chosen, name)) > 1]
    if chosen.experts is not None:
        shown.append(f"experts {chosen.experts}")
    return ", ".join([chosen.parallel, *shown])
