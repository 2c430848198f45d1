"""The cells of a trace file, and checks of whole columns.

A `Table` holds the cells as the file has them. Its methods check one column, all rows at
once, and return its values. The error names the first bad cell and its place.

    table.counts("gpus")     # array([1, 8, 4]), or TraceError: week.csv:17: field 'gpus' is ...
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from artist.errors import TraceError, shortened
from artist.io.reading import as_float
from artist.trace.native.time_units import clock_s, time_remedy
from artist.units import MAX_TIME_S

# Whole numbers up to this one are exact in a double.
MAX_COUNT = 2**53

# Ten times the largest cluster ever reported. A job that demands more is a mistake in the file.
MAX_GPUS = 10**6

# The widest published trace has 25. Every column costs time and memory in every row.
MAX_COLUMNS = 1_000

MOST_PLACES = 10
"""Other bad cells that an error names; it counts the rest."""

HINT_PREFIX = "hint_"

GPUS = ("gpus", "num_gpus")
SHARE = "gpu_share"
"""Columns with the number of GPUs that a job asks for, and with its share of one GPU."""
GPU_MEMORY = "gpu_memory_gib"
MIG = "mig"

_COMMAS = re.compile(r"'-?\d+(,\d+)+(\.\d+)?'", re.ASCII)


class Source(NamedTuple):
    """A column as it stands in the file, where a mapping gave it another name or unit."""

    name: str
    cells: Any
    unit: str = ""


class CellError(TraceError):
    """Cells of one column are bad."""

    def __init__(self, message: str, column: str) -> None:
        super().__init__(message)
        self.column = column


@dataclass(frozen=True, slots=True)
class Table:
    """The columns of a file by name.

    `numbers[i]` is where row i stands in the file. `unit` is what the numbers count: `line`
    in text files, `row` in Parquet.

    A column is a sequence of cells, of whatever types the file gave them, or an array of floats
    in which NaN stands for an empty cell.

    `sources` and `header` are the file's own columns, where a mapping changed them.
    """

    path: Path
    unit: str
    numbers: Sequence[int]
    columns: Mapping[str, Any]
    sources: Mapping[str, Source] = field(default_factory=dict)
    header: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.numbers)

    def place(self, index: int) -> str:
        """Where a row stands in the file, as in `week.csv:17`."""
        return place(self.path, self.unit, self.numbers[index])

    @property
    def names(self) -> tuple[str, ...]:
        """The columns as the file calls them."""
        return self.header or tuple(self.columns)

    def header_place(self) -> str:
        """Where the file names its columns."""
        return f"{self.path}:1" if self.unit == "line" else f"{self.path}: header"

    def error(
        self,
        index: int,
        name: str,
        expected: str,
        remedy: str = "correct this row",
        others: Sequence[int] = (),
    ) -> CellError:
        """An error about one bad cell: its place, its column, its value and what was `expected`.

        `others` are the rows whose cells of this column are bad too.
        """
        source = self.sources.get(name)
        value = (source.cells if source else self.columns[name])[index]
        empty = isinstance(value, str) and not value
        got = "missing" if value is None else "empty" if empty else repr(value)[:60]
        unit = f" {source.unit}" if source and source.unit and not empty else ""
        if _COMMAS.fullmatch(got):
            remedy = "write decimals with a point, such as 1.5, and no commas between thousands"
        of = f" (column {shortened(source.name)})" if source and source.name != name else ""
        return CellError(
            f"{self.place(index)}: field {name!r}{of} is {got}{unit}, expected {expected}; {remedy}"
            f"{self._bad_too(others)}",
            name,
        )

    def _bad_too(self, others: Sequence[int]) -> str:
        """The places of other bad cells, so that the user can correct all at once."""
        if not len(others):
            return ""
        places = ", ".join(f"{self.numbers[index]:,}" for index in others[:MOST_PLACES])
        rest = len(others) - MOST_PLACES
        more = f" and {rest:,} more" if rest > 0 else ""
        return f" (also bad: {self.unit}{'s' if len(others) > 1 else ''} {places}{more})"

    def texts(self, name: str) -> list[str]:
        """Texts that are not empty, without surrounding spaces."""
        texts = ["" if cell is None else str(cell).strip() for cell in self.columns[name]]
        if "" in texts:
            first, *others = (index for index, text in enumerate(texts) if not text)
            raise self.error(first, name, "non-empty text", others=others)
        return texts

    def texts_or(self, name: str, default: str) -> list[str]:
        """As `texts`, with `default` in place of an empty cell or an absent column."""
        if name not in self.columns:
            return [default] * len(self)
        cells = self.columns[name]
        return [default if cell is None else str(cell).strip() or default for cell in cells]

    def seconds(self, name: str, *, positive: bool = False) -> npt.NDArray[np.float64]:
        """Times in seconds, zero or more (`positive`: more than zero).

        A duration may also be `[D-]HH:MM:SS`, as Slurm prints it.
        """
        cells = self.columns[name]
        values = _floats(cells)
        if name == "duration" and np.isnan(values).any():
            values = np.where(np.isnan(values), [clock_s(cell) for cell in cells], values)
        good = (values <= MAX_TIME_S) & ((values > 0) if positive else (values >= 0))
        low = "more than 0" if positive else "from 0"
        if not good.all():
            index = int(np.argmin(good))
            source = self.sources.get(name)
            limits = f"{low} up to {MAX_TIME_S:.0e}"
            seconds = f"a time, {limits} s" if source and source.unit else f"seconds, {limits}"
            if name == "duration":
                seconds += ", or a length such as 21:44:38"
            remedy = time_remedy(self.columns[name][index], name)
            raise self.error(index, name, seconds, remedy, np.flatnonzero(~good)[1:].tolist())
        return values

    def has_clocks(self, name: str, *, all_: bool = False) -> bool:
        """Whether some cells of a column are `[D-]HH:MM:SS` instead of numbers."""
        cells = self.columns[name]
        if isinstance(cells, np.ndarray) or not len(cells):
            return False
        return (all if all_ else any)(clock_s(cell) >= 0 for cell in cells)

    def seconds_or(self, name: str, default: float) -> npt.NDArray[np.float64]:
        """As `seconds`, with `default` in place of an empty cell or an absent column."""
        if name not in self.columns:
            return np.full(len(self), default)
        return self._filled(name, [default] * len(self)).seconds(name)

    def seconds_or_0(self, name: str) -> npt.NDArray[np.float64]:
        """Times of more than 0 s, with 0 in place of an empty cell or an absent column."""
        if name not in self.columns:
            return np.zeros(len(self))
        times = self._filled(name, [1.0] * len(self)).seconds(name, positive=True)
        return np.where(self._empty(name), 0.0, times)

    def counts(self, name: str, most: int = MAX_COUNT) -> npt.NDArray[np.int64]:
        """Whole numbers from 1 to `most`."""
        values = _floats(self.columns[name])
        good = (values >= 1) & (values <= most) & (values == np.floor(values))
        expected = f"a whole number from 1 to {most}"
        parts = np.flatnonzero((values > 0) & (values < 1))
        if name in GPUS and len(parts):
            share = f"for a part of a GPU write 1, and {values[parts[0]]:g} under {SHARE}"
            raise self.error(int(parts[0]), name, expected, share, parts[1:].tolist())
        self.require(good, name, expected)
        return values.astype(np.int64)

    def counts_or(
        self, name: str, default: Sequence[int], most: int = MAX_COUNT
    ) -> npt.NDArray[np.int64]:
        """As `counts`, with a `default` per row in place of an empty cell or an absent column."""
        if name not in self.columns:
            return np.asarray(default, np.int64)
        return self._filled(name, default).counts(name, most)

    def texts_if_any(self, name: str) -> Iterable[str | None]:
        """Texts, with None in place of an empty cell or an absent column."""
        if name not in self.columns:
            return itertools.repeat(None, len(self))
        return [text or None for text in self.texts_or(name, "")]

    def words(self, name: str) -> Iterable[tuple[str, ...]]:
        """The words of each text. An empty cell or an absent column has none."""
        if name not in self.columns:
            return itertools.repeat((), len(self))
        words = [() if cell is None else tuple(str(cell).split()) for cell in self.columns[name]]
        for index, row in enumerate(words):
            if len(set(row)) < len(row):
                raise self.error(index, name, "each name once")
        return words

    def seconds_if_any(self, name: str) -> Iterable[float | None]:
        """As `seconds`, with None in place of an empty cell or an absent column."""
        return self._if_any(name, lambda table: table.seconds(name))

    def counts_if_any(self, name: str, most: int) -> Iterable[int | None]:
        """As `counts`, with None in place of an empty cell or an absent column."""
        return self._if_any(name, lambda table: table.counts(name, most))

    def parts_or_0(self, name: str, in_one: int, most: int) -> Iterable[int]:
        """Amounts from 0 to `most`, rounded up to whole parts of their unit.

        0 in place of an empty cell or an absent column.
        """
        if name not in self.columns:
            return itertools.repeat(0, len(self))
        filled = self._filled(name, [0] * len(self))
        values = _floats(filled.columns[name])
        self.require((values >= 0) & (values <= most), name, f"a number from 0 to {most}")
        parts: list[int] = np.ceil(np.round(values * in_one, 6)).astype(np.int64).tolist()
        return parts

    def thousandths(self, name: str) -> npt.NDArray[np.int64]:
        """Shares from 0.001 to 1, in thousandths; an empty cell is 1."""
        values = _floats(self._filled(name, [1] * len(self)).columns[name]) * 1000
        milli = np.rint(values)
        good = (milli >= 1) & (milli <= 1000) & (np.abs(values - milli) < 1e-6)
        self.require(good, name, "a share from 0.001 to 1, of at most three decimals")
        return milli.astype(np.int64)

    def _if_any(
        self, name: str, checked: Callable[[Table], npt.NDArray[Any]]
    ) -> Iterable[Any | None]:
        """The numbers of a column, with None in place of an empty cell or an absent column."""
        if name not in self.columns:
            return itertools.repeat(None, len(self))
        # With 1 in place of empty cells, all cells can be checked as one column.
        values = checked(self._filled(name, [1] * len(self))).tolist()
        empty = self._empty(name).tolist()
        return [None if none else x for x, none in zip(values, empty, strict=True)]

    def _empty(self, name: str) -> npt.NDArray[np.bool_]:
        """Whether each cell of a column is empty."""
        cells = self.columns[name]
        if isinstance(cells, np.ndarray):
            return np.isnan(cells)
        return np.fromiter((cell is None or cell == "" for cell in cells), np.bool_, len(cells))

    def require(self, good: npt.NDArray[np.bool_], name: str, expected: str) -> None:
        """Check a column; `good` holds for each row whether its cell is as `expected`.

        Raises:
            TraceError: names the first cell that is not good.
        """
        if not good.all():
            first, *others = np.flatnonzero(~good).tolist()
            raise self.error(first, name, expected, others=others)

    def hints(self) -> Iterable[dict[str, object]]:
        """Columns for policies (`hint_*`), not checked: one mapping per row."""
        names = [name for name in self.columns if name.startswith(HINT_PREFIX)]
        if not names:
            # All rows share one empty mapping: a million mappings would take 60 MiB.
            return itertools.repeat({}, len(self))
        rows = zip(*(self.columns[name] for name in names), strict=True)
        return [dict(zip(names, row, strict=True)) for row in rows]

    def _filled(self, name: str, default: Sequence[object]) -> Table:
        """A table with only this column, and `default` in place of its empty cells."""
        cells = self.columns[name]
        if isinstance(cells, np.ndarray):
            empty = np.isnan(cells)
            filled = np.where(empty, np.asarray(default), cells) if empty.any() else cells
            return replace(self, columns={name: filled})
        replaced = [
            other if cell is None or cell == "" else cell
            for cell, other in zip(cells, default, strict=True)
        ]
        return replace(self, columns={name: replaced})


def _floats(cells: Sequence[object] | npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The cells as floats, with NaN for each cell that is not a number."""
    if isinstance(cells, np.ndarray):
        return cells
    return np.fromiter(map(as_float, cells), np.float64, len(cells))


def place(file: object, unit: str, number: int) -> str:
    """A place in a file: `week.csv:17` for a line, `week.parquet: row 17` for another unit."""
    return f"{file}:{number}" if unit == "line" else f"{file}: {unit} {number}"
