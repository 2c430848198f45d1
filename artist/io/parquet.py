"""Reads Parquet files, without threads and only if their content fits into memory.

An Arrow thread that frees memory of Python while the command ends aborts the process. A few bytes
of Parquet may stand for billions of values, because a repeated value is written once.

Only counts of rows and bytes are read from the footer. The description of a column
(`RowGroupMetaData.column`) is not: if it is damaged, Arrow ends the process.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

MAX_BYTES = 2**31
"""The most memory of a table. A million jobs take a tenth of it."""

_BATCH_ROWS = 2**16


def read_parquet(source: Any, columns: Sequence[str] | None = None, *, value_bytes: int = 8) -> Any:
    """The table of a file, a path or a buffer, as a `pyarrow.Table`.

    `value_bytes` is the memory of a value: 8 in an array, about 40 as a Python object.

    Raises:
        ValueError: it would take more than `MAX_BYTES`.
        OSError, pyarrow.ArrowException: the file cannot be read.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if isinstance(source, Path):
        if source.exists() and not source.is_file():
            raise OSError(errno.EINVAL, "not a file")  # on a pipe Arrow would wait forever
        source = source.absolute()  # Arrow takes `a:b` for an address
    foot = pq.read_metadata(source)
    texts = {one.name: one.type for one in foot.schema.to_arrow_schema() if is_text(one.type)}
    _check_sizes(foot, columns, value_bytes)
    # In a dictionary a repeated text takes memory only once, until lengths are checked.
    with pq.ParquetFile(source, read_dictionary=list(texts), pre_buffer=False) as file:
        batches = list(_batches(file, columns))
        if batches:
            table = pa.Table.from_batches(batches)
        else:
            empty = file.schema_arrow.empty_table()
            table = empty if columns is None else empty.select(columns)
    return _decoded(table, texts)


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is a type of texts."""
    from pyarrow import types

    return bool(types.is_string(kind) or types.is_large_string(kind))


def _check_sizes(foot: Any, columns: Sequence[str] | None, value_bytes: int) -> None:
    """Refuse too many values or bytes, by the counts in the footer."""
    groups = [foot.row_group(index) for index in range(foot.num_row_groups)]
    rows = max(foot.num_rows, sum(group.num_rows for group in groups))
    values = rows * (foot.num_columns if columns is None else len(columns))
    if values * value_bytes > MAX_BYTES:
        raise ValueError(_too_large(f"{values:,} values", values * value_bytes))
    unpacked = sum(group.total_byte_size for group in groups)
    if unpacked > MAX_BYTES:
        raise ValueError(_too_large("its pages", unpacked))


def _batches(file: Any, columns: Sequence[str] | None) -> Iterator[Any]:
    """The rows in checked batches, as long as they fit into memory: lists may have any length."""
    size = 0
    for batch in file.iter_batches(_BATCH_ROWS, columns=columns, use_threads=False):
        batch.validate(full=True)  # Arrow reads damaged cells, and fails when they are used
        # Batches may share a dictionary, so only its indices are counted.
        size += sum(getattr(column, "indices", column).nbytes for column in batch.columns)
        if size > MAX_BYTES:
            raise ValueError(_too_large("the first rows", size))
        yield batch


def _decoded(table: Any, texts: Mapping[str, Any]) -> Any:
    """The table with plain texts of these types in place of dictionaries, if not too long."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    for index, name in enumerate(table.column_names):
        column = table.column(index)
        if not pa.types.is_dictionary(column.type):
            continue
        size = 0
        for chunk in column.chunks:
            length = pc.fill_null(pc.binary_length(chunk.dictionary), 0).to_numpy()
            at = pc.drop_null(chunk.indices).to_numpy()
            size += int(length.astype(np.int64)[at].sum())
        if size > MAX_BYTES:
            raise ValueError(_too_large(f"the text of column {name!r}", size))
        table = table.set_column(index, name, column.cast(texts[name]))
    return table


def _too_large(what: str, size: int) -> str:
    return f"{what} would take {size / 2**30:.1f} GiB of memory, at most {MAX_BYTES / 2**30:.0f}"
