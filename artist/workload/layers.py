"""A model as ASTRA-sim sees it: layers with compute times and collectives.

Reads and writes ASTRA-sim's text workload format. Compute times are in
microseconds (floats until `quantised`), collective sizes in bytes.

The format: the parallelism, the number of layers, then one line per layer with
twelve fields: name, -1 (reserved), three passes (forward, input gradient,
weight gradient) of compute time, collective and bytes, and the update time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from artist.errors import ConfigError, TraceError
from artist.io.data_files import decode, read_bytes
from artist.units import MAX_TIME_S


class Collective(StrEnum):
    """Collectives by the names of ASTRA-sim's text format."""

    NONE = "NONE"
    ALL_REDUCE = "ALLREDUCE"
    ALL_GATHER = "ALLGATHER"
    REDUCE_SCATTER = "REDUCESCATTER"
    ALL_TO_ALL = "ALLTOALL"


class Parallelism(StrEnum):
    """How an iteration is ordered; see `artist.workload.graph`.

    DATA and MICRO are first lines of ASTRA-sim's text format. FSDP and LAYERWISE are
    not: it has no collectives before a layer, none over some of the GPUs, and takes
    NONE for an all-reduce.
    """

    DATA = "DATA"
    MICRO = "MICRO"
    FSDP = "FSDP"
    LAYERWISE = "LAYERWISE"


class Scope(StrEnum):
    """Which GPUs of the job take part in a collective; see `Degrees`."""

    ALL = "all"
    TENSOR = "tensor"
    DATA = "data"
    STAGE = "stage"
    EXPERT = "expert"
    REPLICA = "replica"


@dataclass(frozen=True, slots=True)
class Degrees:
    """How a job's GPUs are divided: tensor-parallel groups innermost, pipeline stages outermost.

    `experts` is the number of experts of a layer, spread over that many neighbouring GPUs
    (or over all of a smaller job).
    """

    tensor: int = 1
    stages: int = 1
    experts: int = 1


@dataclass(frozen=True, slots=True)
class Phase:
    """Forward, input-gradient or weight-gradient pass of one layer.

    `comm_bytes` is ASTRA-sim's size for DATA and MICRO (of an all-gather, what one GPU
    contributes); for FSDP and LAYERWISE it is the whole buffer, also of an all-gather.
    """

    compute_us: float = 0.0
    collective: Collective = Collective.NONE
    comm_bytes: int = 0
    scope: Scope = Scope.ALL


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer. `update_us` is the weight-update time, which DATA workloads ignore."""

    name: str
    forward: Phase
    input_grad: Phase
    weight_grad: Phase
    update_us: float = 0.0


@dataclass(frozen=True, slots=True)
class Workload:
    """One training iteration of a model on one worker."""

    name: str
    parallelism: Parallelism
    layers: tuple[Layer, ...]
    degrees: Degrees = Degrees()


def quantised(workload: Workload) -> Workload:
    """The workload with whole microseconds, the only ones ASTRA-sim 2.x reads.

    The rounding error of one pass is carried into the next one executed
    (forward from the first layer, then weight and input gradient from the last),
    so every moment of the iteration is right within half a microsecond. Rounding
    each alone would turn a model of many small layers into one of none.
    """
    spans = _Diffusion()
    forward = [replace(x.forward, compute_us=spans.next(x.forward)) for x in workload.layers]
    backward = [
        (
            replace(x.weight_grad, compute_us=spans.next(x.weight_grad)),
            replace(x.input_grad, compute_us=spans.next(x.input_grad)),
        )
        for x in reversed(workload.layers)
    ]
    layers = tuple(
        Layer(x.name, ahead, input_grad, weight_grad, float(round(x.update_us)))
        for x, ahead, (weight_grad, input_grad) in zip(
            workload.layers, forward, reversed(backward), strict=True
        )
    )
    return replace(workload, layers=layers)


class _Diffusion:
    """Differences of rounded running sums."""

    def __init__(self) -> None:
        self._exact_us = 0.0
        self._rounded_us = 0

    def next(self, phase: Phase) -> float:
        self._exact_us += phase.compute_us
        whole_us = round(self._exact_us) - self._rounded_us
        self._rounded_us += whole_us
        return float(whole_us)


_TEXT = (Parallelism.DATA, Parallelism.MICRO)


def to_text(workload: Workload) -> str:
    """ASTRA-sim's text form. Fractions of a microsecond are kept; see `quantised`.

    Raises:
        ConfigError: the text format cannot hold this parallelism.
    """
    if workload.parallelism not in _TEXT:
        raise ConfigError(
            f"workload {workload.name!r} is {workload.parallelism}: ASTRA-sim's text format holds "
            f"{' and '.join(_TEXT)} alone; use a data-parallel model or backend analytical"
        )
    lines = [str(workload.parallelism), str(len(workload.layers))]
    lines += ["\t".join(_fields(layer)) for layer in workload.layers]
    return "\n".join(lines) + "\n"


def _fields(layer: Layer) -> Iterator[str]:
    yield layer.name
    yield "-1"
    for phase in (layer.forward, layer.input_grad, layer.weight_grad):
        yield _microseconds(phase.compute_us)
        yield str(phase.collective)
        yield str(phase.comm_bytes)
    yield _microseconds(layer.update_us)


def _microseconds(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def read_text(path: Path) -> Workload:
    """Read a workload in ASTRA-sim's text format; it is named after the file.

    Stricter than ASTRA-sim, which takes an unknown collective for an all-reduce.

    Raises:
        TraceError: the file cannot be read or is malformed; names file, line and field.
    """
    lines = decode(path, read_bytes(path)).rstrip().split("\n")
    first = _Line(path, 1, [lines[0].strip()])
    if first.tokens[0] not in _TEXT:
        raise first.error(0, "parallelism", "one of " + ", ".join(_TEXT))
    parallelism = Parallelism(first.tokens[0])
    if len(lines) < 2:
        raise TraceError(f"{path}:2: the file ends here, expected the number of layers")
    count = _Line(path, 2, [lines[1].strip()]).integer(0, "number of layers", at_least=1)
    if count != len(lines) - 2:
        raise TraceError(
            f"{path}:2: number of layers is {count}, but {len(lines) - 2} layer lines follow; "
            "correct line 2 or the lines after it"
        )
    rows = (_Line(path, number, line.split()) for number, line in enumerate(lines[2:], 3))
    return Workload(path.stem, parallelism, tuple(row.layer() for row in rows))


_Name = TypeVar("_Name", bound=StrEnum)

_FIELDS = 12


@dataclass(frozen=True, slots=True)
class _Line:
    """One line of the file, which knows how to complain about its fields."""

    path: Path
    number: int
    tokens: list[str]

    def layer(self) -> Layer:
        if len(self.tokens) != _FIELDS:
            raise TraceError(
                f"{self.path}:{self.number}: {len(self.tokens)} fields, expected {_FIELDS} "
                "(name, -1, three times 'compute collective bytes', update); separate by tabs"
            )
        if self.tokens[1] != "-1":
            raise self.error(1, "reserved field", "-1")
        return Layer(
            self.tokens[0],
            self.phase(2, "forward"),
            self.phase(5, "input gradient"),
            self.phase(8, "weight gradient"),
            self.microseconds(11, "update time"),
        )

    def phase(self, first: int, name: str) -> Phase:
        return Phase(
            self.microseconds(first, f"{name} compute"),
            self.choice(first + 1, f"{name} collective", Collective),
            self.integer(first + 2, f"{name} bytes", at_least=0),
        )

    def microseconds(self, index: int, name: str) -> float:
        try:
            value = float(self.tokens[index])
        except ValueError:
            value = math.nan
        if not 0 <= value <= MAX_TIME_S * 1e6:
            raise self.error(index, name, "microseconds, zero or more")
        return value

    def integer(self, index: int, name: str, at_least: int) -> int:
        token = self.tokens[index]
        # ASTRA-sim holds counts in signed 64 bits: 18 digits always fit.
        plain = token.isascii() and token.isdigit() and len(token) <= 18
        if not plain or int(token) < at_least:
            raise self.error(index, name, f"a whole number, {at_least} or more")
        return int(token)

    def choice(self, index: int, name: str, of: type[_Name]) -> _Name:
        try:
            return of(self.tokens[index])
        except ValueError:
            raise self.error(index, name, "one of " + ", ".join(of)) from None

    def error(self, index: int, name: str, expected: str) -> TraceError:
        return TraceError(
            f"{self.path}:{self.number}: {name} is {self.tokens[index][:40]!r}, "
            f"expected {expected}; correct the line"
        )
