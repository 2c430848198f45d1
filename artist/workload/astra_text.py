"""ASTRA-sim's text format of workloads: reading and writing.

Line 1 is the parallelism, line 2 the number of layers. Then comes one line per layer with twelve
fields: name, -1 (reserved), three passes (forward, input gradient, weight gradient) of compute
time, collective and bytes each, and the update time. Times are microseconds.

    DATA
    1
    conv1 -1 5 NONE 0 5 NONE 0 5 ALLREDUCE 38144 0
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from artist.errors import ConfigError, TraceError
from artist.io.reading import as_float, decode, read_bytes
from artist.units import MAX_TIME_S, counted
from artist.workload.layers import Collective, Layer, Parallelism, Phase, Workload

# `layers.Parallelism` says why the format cannot express the others.
_EXPRESSIBLE = (Parallelism.DATA, Parallelism.MICRO)


def to_text(workload: Workload) -> str:
    """The workload in ASTRA-sim's text format.

    Fractions of a microsecond are written as they are; `layers.quantised` removes them.

    Raises:
        ConfigError: the text format cannot express this parallelism.
    """
    if workload.parallelism not in _EXPRESSIBLE:
        raise ConfigError(
            f"workload {workload.name!r} is {workload.parallelism}: ASTRA-sim's text format holds "
            f"{' and '.join(_EXPRESSIBLE)} alone; use a data-parallel model or backend analytical"
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
    """Read a workload in ASTRA-sim's text format. The file's name becomes its name.

    This reader is stricter than ASTRA-sim's, which runs an unknown collective as an all-reduce.

    Raises:
        TraceError: the file cannot be read or is malformed; names file, line and field.
    """
    lines = decode(path, read_bytes(path)).rstrip().split("\n")
    first = _Line(path, 1, [lines[0].strip()])
    if first.tokens[0] not in _EXPRESSIBLE:
        raise first.error(0, "parallelism", "one of " + ", ".join(_EXPRESSIBLE))
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
    """The fields of one line. Its methods check a field and name file, line and field in errors."""

    path: Path
    number: int
    tokens: list[str]

    def layer(self) -> Layer:
        """The layer in the twelve fields."""
        if len(self.tokens) != _FIELDS:
            raise TraceError(
                f"{self.path}:{self.number}: {counted(len(self.tokens), 'field')}, expected "
                f"{_FIELDS} (name, -1, three times 'compute collective bytes', update); separate "
                "by tabs"
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
        value = as_float(self.tokens[index])
        if not 0 <= value <= MAX_TIME_S * 1e6:
            raise self.error(index, name, "microseconds, zero or more")
        return value

    def integer(self, index: int, name: str, at_least: int) -> int:
        token = self.tokens[index]
        # ASTRA-sim stores counts in signed 64-bit integers: 18 digits always fit.
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
