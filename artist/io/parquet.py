"""Reads Parquet files: with one thread, and only if what they hold fits into memory.

Arrow's threads may still run when the command ends, and then the process aborts. And a few bytes of
Parquet may stand for billions of values: a value that repeats is written once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

MAX_BYTES = 2**31
"""Of a table in memory. A million jobs take a tenth of it."""


def read_parquet(source: Any, columns: Sequence[str] | None = None, *, value_bytes: int = 8) -> Any:
    """The table of a file, a path or a buffer, as a `pyarrow.Table`.

    `value_bytes`: what a value will take, 8 in an array and some 40 as a Python object.

    Raises:
        ValueError: it would take more than `MAX_BYTES`.
        OSError, pyarrow.ArrowException: the file cannot be read.
    """
    import pyarrow.parquet as pq
    from pyarrow import types

    with pq.ParquetFile(source) as file:
        texts = {
            field.name: field.type
            for field in file.schema_arrow
            if types.is_string(field.type) or types.is_large_string(field.type)
        }
        _check_values(file.metadata, columns, value_bytes)
    # As a dictionary, a text that repeats takes its memory once until its length is checked.
    with pq.ParquetFile(source, read_dictionary=list(texts)) as file:
        table = file.read(columns=columns, use_threads=False)
    return _decoded(table, texts)


def _check_values(metadata: Any, columns: Sequence[str] | None, value_bytes: int) -> None:
    """Refuse too many values, by the counts that the file states."""
    values = metadata.num_rows * (metadata.num_columns if columns is None else len(columns))
    stored = 0
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        chunks = [row_group.column(index) for index in range(row_group.num_columns)]
        wanted = [
            chunk
            for chunk in chunks
            if columns is None or chunk.path_in_schema.partition(".")[0] in columns
        ]
        values = max(values, sum(chunk.num_values for chunk in wanted))
        stored += sum(chunk.total_uncompressed_size for chunk in wanted)
    if values * value_bytes + stored > MAX_BYTES:
        raise ValueError(_too_large(f"{values:,} values", values * value_bytes + stored))


def _decoded(table: Any, texts: Mapping[str, Any]) -> Any:
    """The table with plain text, of these types, if that is not too long."""
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
