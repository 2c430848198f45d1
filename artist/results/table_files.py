"""Tables as Arrow tables, without loading pandas, and as CSV or Parquet files.

`pyarrow.array` imports pandas first, which takes 0.2 s. Arrays of numbers, and lists of texts or
numbers, do not need `pyarrow.array`: Arrow can use their memory directly.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from artist.errors import ConfigError
from artist.io.writing import check_new_file, whole_file, write_whole

if TYPE_CHECKING:
    from artist.results.terms.columns import Column

SUFFIXES = (".csv", ".parquet")


def check_table_file(path: Path, option: str, *, overwrite: bool) -> None:
    """Refuse a file that may not or cannot be written, before the work on its content begins.

    Raises:
        ConfigError: another suffix, a file that is there already, or a place that cannot be
            written.
    """
    if path.suffix not in SUFFIXES:
        raise ConfigError(f"{option} {path}: expected a name that ends in .csv or .parquet")
    check_new_file(path, option, overwrite=overwrite)


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

# Arrow counts the bytes of a text column in 32 bits.
_MOST_BYTES = 2**31 - 1


def arrow_table(columns: Mapping[str, Column]) -> Any:
    """A `pyarrow.Table` of these columns, with the types that `pyarrow.table` would give them.

    A trace's hints may hold any values. If Arrow has no type for a column, it becomes text.
    """
    import pyarrow as pa

    return pa.table({name: _array(values) for name, values in columns.items()})


def _array(values: Column) -> Any:
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
