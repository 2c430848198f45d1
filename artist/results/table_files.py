"""Tables as Arrow tables, without loading pandas, and as CSV or Parquet files that are checked.

`pyarrow.array` imports pandas first, which takes 0.2 s. Arrays of numbers, and lists of texts or
numbers, do not need `pyarrow.array`: Arrow can use their memory directly.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np
import numpy.typing as npt

from artist.errors import ConfigError, TraceError, one_line
from artist.io.parquet import is_text, read_parquet
from artist.io.reading import is_file
from artist.io.writing import check_new_file, whole_file, write_whole
from artist.results.terms.columns import TABLE_TERMS, TABLES, Column, ColumnTerm

SUFFIXES = (".csv", ".parquet")


def check_table_file(path: Path, *, overwrite: bool) -> None:
    """Refuse a file of `--values` that may not or cannot be written, before the work begins.

    Raises:
        ConfigError: another suffix, a file that is there already, or a place that cannot be
            written.
    """
    if path.suffix not in SUFFIXES:
        raise ConfigError(f"--values {path}: expected a name that ends in .csv or .parquet")
    check_new_file(path, "--values", overwrite=overwrite)


def write_table(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write rows; a column that a row lacks is empty there.

    Raises:
        ConfigError: the file cannot be written.
    """
    columns = list(dict.fromkeys(name for row in rows for name in row))
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        table = {name: [row.get(name) for row in rows] for name in columns}
        with whole_file(path) as partial:
            pq.write_table(arrow_table(table), partial)
        return
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([row.get(name) for name in columns] for row in rows)
    write_whole(path, text.getvalue())


# -- as Arrow tables -----------------------------------------------------------------

# Arrow's offsets into a text column are 32-bit integers.
_MOST_BYTES = 2**31 - 1


def arrow_table(columns: Mapping[str, Column]) -> Any:
    """A `pyarrow.Table` of these columns, with the types that `pyarrow.table` would give them.

    A trace's hints may hold any values. If Arrow has no type for a column, it becomes text.
    """
    import pyarrow as pa

    return pa.table({name: _array(values) for name, values in columns.items()})


def _array(values: Column) -> Any:
    """A column as an Arrow array, made in the fastest way that keeps its values."""

    import pyarrow as pa

    if isinstance(values, np.ndarray):
        return _numbers(values, None) if values.dtype.kind in "if" else pa.array(values)
    if not values:
        return pa.nulls(0)
    types = set(map(type, values))
    present = [value is not None for value in values] if NoneType in types else None
    types.discard(NoneType)
    array = None
    if types == {str}:
        array = _texts([value or "" for value in values] if present else values, present)
    elif types == {float}:
        array = _numbers(np.array(values, np.float64), present)  # None becomes NaN
    elif types == {list} and present is None:
        array = _lists_of_texts(values)
    elif types == {int} and present is None:
        array = _whole_numbers(values)
    return _anything(values) if array is None else array


def _anything(values: Sequence[object]) -> Any:
    import pyarrow as pa

    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError):
        return pa.array([None if value is None else str(value) for value in values])


def _numbers(values: npt.NDArray[Any], present: Sequence[bool] | None) -> Any:
    import pyarrow as pa

    dtype, memory = pa.from_numpy_dtype(values.dtype), pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(dtype, len(values), [_bitmap(present), memory])


def _whole_numbers(values: Sequence[int]) -> Any:
    """An array of these numbers; None if one needs more than 64 bits."""
    try:
        return _numbers(np.array(values, np.int64), None)
    except OverflowError:
        return None


def _texts(texts: Sequence[str], present: Sequence[bool] | None) -> Any:
    """An array of these texts; None if one array cannot hold them all."""
    import pyarrow as pa

    joined = "".join(texts)
    data = joined.encode()
    if len(data) > _MOST_BYTES:
        return None
    ascii_only = len(data) == len(joined)
    lengths = map(len, texts) if ascii_only else (len(text.encode()) for text in texts)
    ends = np.zeros(len(texts) + 1, np.int32)
    np.cumsum(np.fromiter(lengths, np.int32, len(texts)), out=ends[1:])
    return pa.StringArray.from_buffers(
        len(texts), pa.py_buffer(ends), pa.py_buffer(data), _bitmap(present)
    )


def _lists_of_texts(lists: Sequence[Sequence[str]]) -> Any:
    """An array of these lists; None if they hold anything else than texts."""
    import pyarrow as pa

    flat = [text for texts in lists for text in texts]
    array = _texts(flat, None) if set(map(type, flat)) <= {str} else None
    if array is None:
        return None
    ends = np.zeros(len(lists) + 1, np.int32)
    np.cumsum(np.fromiter(map(len, lists), np.int32, len(lists)), out=ends[1:])
    return pa.ListArray.from_arrays(_numbers(ends, None), array)


def _bitmap(present: Sequence[bool] | None) -> Any:
    """One bit per value, the first one lowest; None if no value is missing."""
    import pyarrow as pa

    if present is None:
        return None
    return pa.py_buffer(np.packbits(np.array(present, np.bool_), bitorder="little"))


def unreadable(path: Path, cause: Exception) -> TraceError:
    """The error of a table that cannot be read."""
    reason = one_line(str(cause).splitlines()[0]) if str(cause) else type(cause).__name__
    return TraceError(f"{path}: cannot be read as Parquet ({reason}); simulate the run again")


def read_table(folder: Path, name: str, reader: str, *, contended: bool | None = False) -> Any:
    """The columns of a run's table that `reader` reads, as a `pyarrow.Table`.

    None if the table is optional and this run has no rows of it. If `contended` is None, columns
    of contention are read if the file has them.

    Raises:
        TraceError: the file is missing or damaged, or a column is missing or has wrong values.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = folder / f"{name}.parquet"
    optional = TABLE_TERMS[name].when != ""
    if not path.exists() and optional:
        return None
    if path.exists() and not is_file(path):  # on a pipe Arrow would wait forever
        raise TraceError(f"{path}: cannot be read (not a file)")
    try:
        file = pq.read_metadata(path.absolute())  # Arrow takes `a:b` for an address
        there = file.schema.to_arrow_schema().names
        wanted = _wanted(name, reader, there, contended=contended)
        missing = [term for term in wanted if term.name not in there]
        # A policy without such rows writes a file without columns.
        if missing and optional and not file.num_rows:
            return None
        if missing:
            raise TraceError(f"{path}: lacks the column {missing[0].name!r}")
        table = read_parquet(path, [term.name for term in wanted])
    except (OSError, ValueError, pa.ArrowException) as cause:
        raise unreadable(path, cause) from cause
    for term in wanted:
        _check(table[term.name], term, path)
    if {"start_s", "end_s"} <= set(table.column_names):
        _check_order(table["start_s"].to_numpy(), table["end_s"].to_numpy(), path)
    return table


def _wanted(
    table: str, reader: str, there: list[str], *, contended: bool | None
) -> tuple[ColumnTerm, ...]:
    """The columns to read: all that must be there, and the optional ones that are."""

    def is_wanted(term: ColumnTerm) -> bool:
        if term.when == "contention" and contended is not None:
            return contended
        return not term.when or term.name in there

    return tuple(term for term in TABLES[table] if term.is_read_by(reader) and is_wanted(term))


def _check(column: Any, term: ColumnTerm, path: Path) -> None:
    """Refuse values of another type than the schema's, missing values and numbers too small."""
    if not len(column) or (term.may_miss and column.null_count == len(column)):
        return  # without any value a column has no type
    content = _CONTENTS.get(term.type, "numbers")
    is_number = content == "numbers"
    if not _FITS[content](column.type) or (column.null_count and not is_number):
        raise TraceError(f"{path}: the column {term.name!r} should hold {content}")
    if is_number:
        _check_numbers(column.to_numpy(), term, path)


def _check_numbers(values: Any, term: ColumnTerm, path: Path) -> None:
    """Check that a column holds numbers in its range.

    Raises:
        TraceError: names file, column and row.
    """
    if term.may_miss:
        values = values[~np.isnan(values)]
    bad = ~(np.abs(values) < _MOST)
    if bad.any():
        row = int(np.argmax(bad))
        raise TraceError(f"{path}: the column {term.name!r} has no number in row {row}")
    if not term.least:
        return
    bad = values <= 0 if term.least == ">0" else values < 0
    if bad.any():
        row = int(np.argmax(bad))
        expected = "more than 0" if term.least == ">0" else "0 or more"
        raise TraceError(
            f"{path}: the column {term.name!r} holds {values[row]:g} in row {row}, "
            f"expected {expected}"
        )


def _check_order(start_s: Any, end_s: Any, path: Path) -> None:
    bad = start_s > end_s
    if len(bad) and bad.any():
        row = int(np.argmax(bad))
        raise TraceError(
            f"{path}: row {row} starts at {start_s[row]:g} s, after its end at {end_s[row]:g} s"
        )


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind))


def _is_texts(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_list(kind) and is_text(kind.value_type))


_MOST = 2.0**63
"""Beyond all times and counts, and what fits a whole number."""

_CONTENTS = {"text": "text", "texts": "lists of text"}
_FITS: Mapping[str, Callable[[Any], bool]] = {
    "numbers": _is_number,
    "text": is_text,
    "lists of text": _is_texts,
}
