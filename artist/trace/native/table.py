"""Raw columns of a trace file and their checks.

A `Table` holds cells as they were found. Its methods turn one column into
checked values, all rows at once; the first bad cell is named with its place.
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from artist.errors import TraceError
from artist.units import MAX_TIME_S

# Whole numbers up to here are exact in a double, whatever file they came from.
MAX_COUNT = 2**53

# Ten times the largest cluster ever reported; a larger demand is a slip of the pen.
MAX_GPUS = 10**6

HINT_PREFIX = "hint_"


@dataclass(frozen=True, slots=True)
class Table:
    """Columns by name; `numbers[i]` is the line (or row, see `unit`) of cell i.

    A column is a sequence of cells as found, or an array of numbers (NaN: no cell).
    """

    path: Path
    unit: str
    numbers: Sequence[int]
    columns: Mapping[str, Any]

    def __len__(self) -> int:
        return len(self.numbers)

    def place(self, index: int) -> str:
        """Where a row stands, as in `week.csv:17`."""
        return place(self.path, self.unit, self.numbers[index])

    def error(self, index: int, name: str, expected: str) -> TraceError:
        """The sentence about one bad cell."""
        value = self.columns[name][index]
        got = "missing" if value is None else repr(value)[:60]
        return TraceError(
            f"{self.place(index)}: field {name!r} is {got}, expected {expected}; correct this row"
        )

    def texts(self, name: str) -> list[str]:
        """Non-empty texts, without surrounding spaces."""
        texts = ["" if cell is None else str(cell).strip() for cell in self.columns[name]]
        if "" in texts:
            raise self.error(texts.index(""), name, "a text that is not empty")
        return texts

    def texts_or(self, name: str, default: str) -> list[str]:
        """As `texts`, with `default` for empty cells or an absent column."""
        if name not in self.columns:
            return [default] * len(self)
        cells = self.columns[name]
        return [default if cell is None else str(cell).strip() or default for cell in cells]

    def seconds(self, name: str, *, positive: bool = False) -> npt.NDArray[np.float64]:
        """Times in seconds, zero or more (`positive`: more than zero)."""
        values = _floats(self.columns[name])
        good = (values <= MAX_TIME_S) & ((values > 0) if positive else (values >= 0))
        low = "more than 0" if positive else "from 0"
        self.require(good, name, f"seconds, {low} up to {MAX_TIME_S:.0e}")
        return values

    def seconds_or(self, name: str, default: float) -> npt.NDArray[np.float64]:
        """As `seconds`, with `default` for empty cells or an absent column."""
        if name not in self.columns:
            return np.full(len(self), default)
        return self._filled(name, [default] * len(self)).seconds(name)

    def counts(self, name: str, most: int = MAX_COUNT) -> npt.NDArray[np.int64]:
        """Whole numbers from 1 to `most`."""
        values = _floats(self.columns[name])
        good = (values >= 1) & (values <= most) & (values == np.floor(values))
        self.require(good, name, f"a whole number from 1 to {most}")
        return values.astype(np.int64)

    def counts_or(
        self, name: str, default: Sequence[int], most: int = MAX_COUNT
    ) -> npt.NDArray[np.int64]:
        """As `counts`, with this row's `default` for empty cells or an absent column."""
        if name not in self.columns:
            return np.asarray(default, np.int64)
        return self._filled(name, default).counts(name, most)

    def require(self, good: npt.NDArray[np.bool_], name: str, expected: str) -> None:
        """Complain about the first row that is not good."""
        if not good.all():
            raise self.error(int(np.argmin(good)), name, expected)

    def hints(self) -> Iterable[dict[str, object]]:
        """Columns meant for policies, untouched, one mapping per row."""
        names = [name for name in self.columns if name.startswith(HINT_PREFIX)]
        if not names:
            return itertools.repeat({}, len(self))  # one for all: a million would take 60 MiB
        rows = zip(*(self.columns[name] for name in names), strict=True)
        return [dict(zip(names, row, strict=True)) for row in rows]

    def _filled(self, name: str, default: Sequence[object]) -> Table:
        cells = self.columns[name]
        if isinstance(cells, np.ndarray):
            missing = np.isnan(cells)
            there = np.where(missing, np.asarray(default), cells) if missing.any() else cells
            return Table(self.path, self.unit, self.numbers, {name: there})
        filled = [
            other if cell is None or cell == "" else cell
            for cell, other in zip(cells, default, strict=True)
        ]
        return Table(self.path, self.unit, self.numbers, {name: filled})


def _floats(cells: Sequence[object] | npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    if isinstance(cells, np.ndarray):
        return cells
    return np.fromiter(map(_float, cells), np.float64, len(cells))


def _float(cell: object) -> float:
    """A number, or NaN for whatever is not one (`1_000` and True are not)."""
    if isinstance(cell, bool) or (isinstance(cell, str) and "_" in cell):
        return np.nan
    try:
        return float(cell)  # type: ignore[arg-type]  # what float refuses is caught
    except (TypeError, ValueError, OverflowError):
        return np.nan


def place(file: object, unit: str, number: int) -> str:
    """`week.csv:17` for a line, `week.parquet: row 17` for what has no lines."""
    return f"{file}:{number}" if unit == "line" else f"{file}: {unit} {number}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`: did you mean 'gpus'?` or nothing."""
    near = difflib.get_close_matches(name, sorted(known), n=1)
    return f": did you mean {near[0]!r}?" if near else ""
