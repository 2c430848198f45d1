"""From text to latency queries, for `artist latency` and `artist render`.

A user describes the network by a placement on a fabric (`4+4,8/2`), or by bare dimensions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, TypeVar

from artist.cluster.fabric import Fabric, with_system
from artist.cluster.placement_shape import gpus_of, parse_signature, shape_text
from artist.errors import ConfigError
from artist.estimates.dimensions import asked_shapes, system_settings
from artist.estimates.latency_service import answer
from artist.estimates.query import Dimension, LatencyBackend, LatencyQuery, SystemSettings, Topology
from artist.estimates.shape_queries import (
    CountedAnswer,
    as_sent,
    counted,
    dimensions_for,
    flat_groups,
    in_groups,
    takes_fastest,
)
from artist.io.safe_yaml import parse_yaml
from artist.workload.division.staged import INNERMOST_FIRST, axes_of_order
from artist.workload.layers import Workload, quantised

N = TypeVar("N", int, float)

FABRIC_SETTINGS = (
    "rings", "uneven", "collectives", "bucket_mib", "first_bucket_mib", "hidden_share",
    "groups",
)  # fmt: skip
"""Settings of a fabric's system that decide what is asked. ASTRA-sim itself has none of them."""

_LISTS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")


@dataclass(frozen=True, slots=True)
class LabelledQuery:
    """A query and a label: the placement's signature, or the sizes of the dimensions (`4x2`)."""

    query: LatencyQuery
    signature: str


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked about one placement: one query, or several for an uneven placement."""

    signature: str
    asked: tuple[LabelledQuery, ...]
    fastest: bool = False
    """Whether the fastest answer counts, not the slowest."""

    def answer(self, backend: LatencyBackend) -> CountedAnswer:
        """The answer that counts, and its place in `asked`.

        Raises:
            BackendError: no query has an answer.
        """
        asks = [partial(answer, backend, labelled.query) for labelled in self.asked]
        return counted(asks, fastest=self.fastest)


def on_placement(
    workload: Workload,
    placement: str,
    fabric: Fabric,
    system: Mapping[str, Any],
    gpus_per_machine: int | None = None,
) -> Question:
    """What is asked about a placement such as `4+4,8/2` on a fabric.

    For a workload with axes, the text may include the order of ranks: `8,8@tensor-data-pipeline`.
    `system` replaces settings of ASTRA-sim's system layer and of the fabric's system. Without
    `gpus_per_machine`, a machine may have any number of GPUs.

    Raises:
        ConfigError: the text is not a placement on that fabric, or a setting is bad.
    """
    of_astra = {key: value for key, value in system.items() if key not in FABRIC_SETTINGS}
    fabric = asked_as(fabric, system)
    text, at, order = placement.partition("@")
    shape = parse_signature(text, fabric.level_names, fabric.gpus_per_socket, gpus_per_machine)
    sent = quantised(as_sent(workload, fabric.system))
    if at:
        sent = _in_order(sent, placement, order)
    asked = []
    for regular in asked_shapes(shape, fabric, divided=sent.fits_some_gpus):
        dims = dimensions_for(sent, regular, fabric, of=shape)
        settings = change_system(
            system_settings(dims, fabric, in_groups=in_groups(sent, gpus_of(regular))), of_astra
        )
        signature = shape_text(regular, fabric.level_names)
        flat = flat_groups(sent, fabric.system)
        query = LatencyQuery(sent, dims, settings, flat_groups=flat)
        asked.append(LabelledQuery(query, signature))
    return Question(
        f"{shape_text(shape, fabric.level_names)}{at}{order}",
        tuple(asked),
        takes_fastest(fabric.system),
    )


def asked_as(fabric: Fabric, system: Mapping[str, Any]) -> Fabric:
    """A fabric with the settings of `parse_system` that concern it.

    Raises:
        ConfigError: a setting is bad.
    """
    of_fabric = {key: value for key, value in system.items() if key in FABRIC_SETTINGS}
    if any(level.shared_by for level in fabric.levels):  # `with_system` then refuses `baseline`
        of_fabric |= {key: system[key] for key in ("collective_optimization",) if key in system}
    return with_system(fabric, of_fabric)


def _in_order(workload: Workload, placement: str, order: str) -> Workload:
    """The workload with its ranks in the written order of axes."""
    staged = workload.staged
    if staged is None:
        raise ConfigError(
            f"placement {placement!r}: an order of ranks is for a model with axes (pipeline=4, ...)"
        )
    try:
        axes = axes_of_order(order)
    except ValueError:
        raise ConfigError(
            f"placement {placement!r}: expected axes behind the @, innermost first, such as "
            f"{'-'.join(INNERMOST_FIRST)}"
        ) from None
    return replace(workload, staged=replace(staged, axes=replace(staged.axes, order=axes)))


def on_dimensions(
    workload: Workload, columns: Mapping[str, str | None], system: Mapping[str, Any]
) -> Question:
    """A query for bare dimensions: `topology`, `npus`, `bandwidth` and `latency`.

    Each of the four is a list, comma-separated, innermost dimension first. Settings of a fabric's
    system have no place here.

    Raises:
        ConfigError: a list is missing, has another length than the others, or has a bad entry.
    """
    for key in system:
        if key in FABRIC_SETTINGS:
            raise ConfigError(f"--system {key}: bare dimensions have no fabric; give --placement")
    lists = {name: text.split(",") for name, text in columns.items() if text is not None}
    lengths = {name: len(values) for name, values in lists.items()}
    if len(lists) != len(columns) or len(set(lengths.values())) != 1:
        got = ", ".join(f"--{name} {lengths.get(name, 0)}" for name in columns)
        raise ConfigError(
            f"bare dimensions need the same number of entries in each list, got {got}"
        )
    dims = tuple(
        Dimension(
            _topology(topology),
            _number("npus", npus, int),
            _number("bandwidth", bandwidth, float),
            _number("latency", latency, float),
        )
        for topology, npus, bandwidth, latency in zip(*lists.values(), strict=True)
    )
    rings = ("ring",) * len(dims)
    settings = change_system(SystemSettings(rings, rings, rings, rings), system)
    query = LatencyQuery(quantised(workload), dims, settings)
    label = "x".join(str(dim.npus) for dim in dims)
    return Question(label, (LabelledQuery(query, label),))


def parse_system(sets: list[str]) -> dict[str, Any]:
    """Settings of ASTRA-sim's system layer and of a fabric's, each written as `KEY=VALUE`.

    Raises:
        ConfigError: a key is unknown, or a value cannot be read.
    """
    known = [*(field.name for field in fields(SystemSettings)), *FABRIC_SETTINGS]
    settings: dict[str, Any] = {}
    for text in sets:
        key, equals, value = text.partition("=")
        key = key.replace("-", "_")
        if not equals or key not in known:
            raise ConfigError(
                f"--system {text!r}: expected KEY=VALUE with one of {', '.join(known)}"
            )
        settings[key] = value if key in _LISTS else parse_yaml(value, f"--system {text!r}")[1]
    return settings


def change_system(settings: SystemSettings, changes: Mapping[str, Any]) -> SystemSettings:
    """Settings with some of them replaced.

    A list of algorithms is comma-separated; a single entry serves all dimensions.

    Raises:
        ConfigError: a value has the wrong type, or a list has the wrong length.
    """
    replaced: dict[str, Any] = {}
    for key, value in changes.items():
        old = getattr(settings, key)
        if key in _LISTS:
            replaced[key] = _algorithms(key, str(value), len(old))
        elif isinstance(old, float) and isinstance(value, int | float) and value is not True:
            replaced[key] = float(value)
        elif type(value) is type(old):
            replaced[key] = value
        else:
            raise ConfigError(f"--system {key}={value}: expected {type(old).__name__}")
    return replace(settings, **replaced)


def _algorithms(key: str, text: str, dims: int) -> tuple[str, ...]:
    names = tuple(text.split(","))
    if len(names) == 1:
        return names * dims
    if len(names) != dims:
        raise ConfigError(f"--system {key}={text}: {len(names)} algorithms for {dims} dimensions")
    return names


def _topology(text: str) -> Topology:
    try:
        return Topology(text)
    except ValueError:
        known = ", ".join(Topology)
        raise ConfigError(f"--topology {text!r}: expected one of {known}") from None


def _number(name: str, text: str, number_type: type[N]) -> N:
    try:
        return number_type(text.encode("ascii"))
    except ValueError:
        raise ConfigError(f"--{name} {text!r}: expected a number") from None
