"""What the readers of foreign formats share: rows and what they find in them.

A reader of a foreign format walks over the rows of a table. For each job it
yields a `Foreign`, for each row that is none a short reason why it was dropped;
what is malformed raises. `foreign.py` makes a trace of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, TypeAlias

from artist.errors import TraceError
from artist.trace.foreign.rules import Rules
from artist.trace.native.table import MAX_COUNT, MAX_GPUS, Table
from artist.units import MAX_TIME_S

CPU_ONLY = "CPU only"
NEVER_STARTED = "never started"
FAILED_FIRST = "failed before it started"
STILL_RUNNING = "still running at the end"
ZERO_DURATION = "zero duration"
NO_ID = "no id"
REPEATED_ID = "repeated id"
PART_OF_A_GPU = "part of a GPU"

# How tables write that they do not know.
_ABSENT = frozenset({"", "none", "nan", "na", "n/a", "null"})

_EPOCH = datetime(1970, 1, 1)


class Foreign(NamedTuple):
    """A job of a foreign trace. `row` is its index in the table; times are seconds.

    `iterations` is 0 and `model` empty where the format does not tell. `shared`
    jobs asked for parts of GPUs, which `gpus` has rounded up.
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


Found: TypeAlias = Foreign | str
Reader: TypeAlias = Callable[[Table, Rules], Iterator[Found]]


@dataclass(slots=True)  # not frozen: that takes three times as long, for every row
class Record:
    """One row of a table. Its methods raise `TraceError`s that name file, line and field."""

    table: Table
    row: int

    def has(self, name: str) -> bool:
        """Whether there is a cell that says something."""
        return name in self.table.columns and bool(self.text(name))

    def text(self, name: str) -> str:
        """The cell without surrounding spaces; empty where it says `None`, `NaN` or the like."""
        cells = self.table.columns.get(name)
        cell = None if cells is None else cells[self.row]
        text = "" if cell is None else str(cell).strip()
        return "" if text.casefold() in _ABSENT else text

    def number(self, name: str, low: float, high: float, what: str) -> float:
        """A finite number from `low` to `high`; `what` says so in the error."""
        cell = self.table.columns[name][self.row]
        text = "" if isinstance(cell, bool | list | dict) else str(cell).strip()
        try:
            value = math.nan if "_" in text else float(text)
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            raise self.error(name, what)
        return value

    def seconds(self, name: str) -> float:
        """Seconds, zero or more."""
        return self.number(name, 0, MAX_TIME_S, f"seconds from 0 up to {MAX_TIME_S:.0e}")

    def count(self, name: str, low: int = 0, high: int = MAX_COUNT) -> int:
        """A whole number from `low` to `high`."""
        what = f"a whole number from {low} to {high}"
        value = self.number(name, low, high, what)
        if value != math.floor(value):
            raise self.error(name, what)
        return int(value)

    def gpus(self, name: str) -> int:
        """A number of GPUs, also none."""
        return self.count(name, 0, MAX_GPUS)

    def moment(self, name: str) -> float | None:
        """Seconds since 1970 of a local time as in `2020-06-09 18:41:01`; None where absent."""
        text = self.text(name)
        if not text:
            return None
        seconds = moment_s(text)
        if seconds is None:
            raise self.error(name, "a time as in 2020-06-09 18:41:01")
        return seconds

    def error(self, name: str, expected: str) -> TraceError:
        """The sentence about one bad cell."""
        return self.table.error(self.row, name, expected)


def records(table: Table) -> Iterator[Record]:
    """All rows of a table."""
    return (Record(table, row) for row in range(len(table)))


def moment_s(text: str) -> float | None:
    """Seconds since 1970 of a local time as in `2020-06-09 18:41:01`; None if it is none."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if moment.tzinfo else (moment - _EPOCH).total_seconds()
