"""What the readers of foreign formats share: the rows they read and the jobs they yield.

A reader walks over the rows of a table. For each job it yields a `ForeignJob`. For each row that
is not a job it yields a short reason why the row is dropped. For a malformed row it raises.
`assemble.py` turns the jobs into a trace and counts the reasons.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from artist.errors import TraceError
from artist.io.reading import as_float
from artist.trace.native.choices import Rules
from artist.trace.native.table import MAX_COUNT, MAX_GPUS, Table
from artist.trace.native.time_units import moment_s
from artist.units import GPU_MILLI, MAX_TIME_S

# Reasons why a row is dropped; single formats add their own.
CPU_ONLY = "CPU only"
NEVER_STARTED = "never started"
FAILED_FIRST = "failed before it started"
STILL_RUNNING = "still running at the end"
ZERO_DURATION = "zero duration"
NO_ID = "no id"
REPEATED_ID = "repeated id"
PART_OF_A_GPU = "part of a GPU"

# Texts with which tables mark an unknown value.
_ABSENT = frozenset({"", "none", "nan", "na", "n/a", "null"})


class ForeignJob(NamedTuple):
    """A job of a foreign trace. `row` is the index of its row in the table; times are seconds.

    `iterations` is 0 and `model` is empty if the format does not state them. If the job asked for
    parts of GPUs, `shared` is true and `gpus` is rounded up; `gpu_milli` is then the part of a
    single GPU. Cores and memory are those of the whole job, 0 if not stated. The keys of `hints`
    are the same for all jobs of a trace.
    """

    row: int
    id: str
    submit_s: float
    gpus: int
    run_s: float
    iterations: int = 0
    model: str = ""
    user: str = ""
    shared: bool = False
    gpu_milli: int = GPU_MILLI
    tenant: str | None = None
    cpu_milli: int = 0
    memory_mib: int = 0
    hints: Mapping[str, object] = MappingProxyType({})


JobOrReason: TypeAlias = ForeignJob | str
Reader: TypeAlias = Callable[[Table, Rules], Iterator[JobOrReason]]


@dataclass(slots=True)  # not frozen: creating a frozen one takes three times as long, for every row
class TraceRow:
    """One row of a table. Its methods check one cell and raise errors with file, line and field."""

    table: Table
    index: int

    def has(self, name: str) -> bool:
        """Whether the row has a value in this column."""
        return name in self.table.columns and bool(self.text(name))

    def text(self, name: str) -> str:
        """The cell without surrounding spaces; empty where it is `None`, `NaN` or the like."""
        cells = self.table.columns.get(name)
        cell = None if cells is None else cells[self.index]
        text = "" if cell is None else str(cell).strip()
        return "" if text.casefold() in _ABSENT else text

    def number(self, name: str, low: float, high: float, expected: str) -> float:
        """A finite number from `low` to `high`; `expected` is what it must be, in words."""
        value = as_float(self.table.columns[name][self.index])
        if not low <= value <= high:
            raise self.error(name, expected)
        return value

    def seconds(self, name: str) -> float:
        """Seconds, zero or more."""
        return self.number(name, 0, MAX_TIME_S, f"seconds from 0 up to {MAX_TIME_S:.0e}")

    def count(self, name: str, low: int = 0, high: int = MAX_COUNT) -> int:
        """A whole number from `low` to `high`."""
        expected = f"a whole number from {low} to {high}"
        value = self.number(name, low, high, expected)
        if value != math.floor(value):
            raise self.error(name, expected)
        return int(value)

    def parts(self, name: str, in_one: float, most: int) -> int:
        """An amount from 0 to `most` in whole parts, rounded up; 0 where the row has none."""
        if not self.has(name):
            return 0
        return math.ceil(self.number(name, 0, most, f"a number from 0 to {most}") * in_one)

    def gpus(self, name: str) -> int:
        """A number of GPUs, zero or more."""
        return self.count(name, 0, MAX_GPUS)

    def moment(self, name: str) -> float:
        """Seconds since 1970 of a local time as in `2020-06-09 18:41:01`."""
        seconds = moment_s(self.text(name))
        if seconds is None:
            raise self.error(name, "a time such as 2020-06-09 18:41:01")
        return seconds

    def error(self, name: str, expected: str) -> TraceError:
        """An error about one bad cell."""
        return self.table.error(self.index, name, expected)


def never_ran(*, failed: bool) -> str:
    """Why a job that has no start is dropped."""
    return FAILED_FIRST if failed else NEVER_STARTED


def by_row(job: Callable[[TraceRow], JobOrReason]) -> Reader:
    """A reader of tables in which every row is one job, or is dropped."""

    def read(table: Table, rules: Rules) -> Iterator[JobOrReason]:
        del rules
        return map(job, rows(table))

    return read


def rows(table: Table) -> Iterator[TraceRow]:
    """All rows of a table."""
    return (TraceRow(table, index) for index in range(len(table)))
