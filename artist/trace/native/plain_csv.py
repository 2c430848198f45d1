"""The fast reader: large plain CSV files, read column by column with Arrow.

A file is plain if it has no quotes, odd line ends or blank lines, and if its numbers are plain
decimals. All CSV files that artist writes are plain. Any other file, and any file with an
error, goes to the careful reader (`read_table.py`), which keeps each cell as it was written
and can name it in a message.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from artist.trace.native.table import MAX_COLUMNS, Table

# For a smaller file, importing Arrow takes longer than reading the file.
FROM_BYTES = 2**20

_BLOCK_BYTES = 2**20

# Columns of the own formats that hold numbers.
NUMBERS = frozenset({
    "arrival_s", "gpus", "iterations", "compute_s", "gpus_min", "gpus_max", "restart_s",
    "checkpoint_interval_s", "checkpoint_cost_s", "priority", "cpu_cores", "memory_gib",
    "gpu_share", "gpu_memory_gib", "submit_time", "num_gpus", "duration",
})  # fmt: skip


def plain_table(path: Path, data: bytes) -> Table | None:
    """The columns of a plain CSV file, or None for a small file or one that is not plain.

    Columns in `NUMBERS` are arrays of floats, with NaN for an empty cell; the others are lists
    of texts. Line numbers count from 1, which is the header.
    """
    if len(data) < FROM_BYTES or _odd(data):
        return None
    header = _header(data[: data.index(b"\n")])
    if header is None:
        return None
    columns = _columns(data, header)
    if columns is None:
        return None
    rows = len(columns[header[0]])
    if data.count(b"\n") + (data[-1:] != b"\n") != rows + 1:
        return None  # there is a blank line somewhere, so the line numbers would be wrong
    return Table(path, "line", range(2, rows + 2), columns)


def _columns(data: bytes, header: list[str]) -> dict[str, Any] | None:
    """The columns, block by block: Arrow never holds a copy of the whole file in memory."""
    import pyarrow as pa
    from pyarrow import csv

    types = {name: pa.float64() if name in NUMBERS else pa.string() for name in header}
    # A list holds the cells of a column of texts, or the blocks of a column of numbers.
    columns: dict[str, list[Any]] = {name: [] for name in header}
    try:
        for block in _blocks(data):
            rows = csv.read_csv(
                _in_arrows_memory(block),
                read_options=csv.ReadOptions(
                    column_names=header, block_size=len(block), use_threads=False
                ),
                parse_options=csv.ParseOptions(quote_char=False, double_quote=False),
                convert_options=csv.ConvertOptions(
                    column_types=types, null_values=[""], strings_can_be_null=False
                ),
            )
            for name in header:
                cells = rows.column(name).combine_chunks()
                if name not in NUMBERS:
                    columns[name] += _texts(cells)
                elif _has_nan(cells):
                    return None
                else:
                    # A copy, so that Arrow can free the block.
                    columns[name].append(cells.to_numpy(zero_copy_only=False).copy())
    except (pa.ArrowException, ValueError):
        return None
    return {
        name: np.concatenate(parts) if parts and name in NUMBERS else parts
        for name, parts in columns.items()
    }


def _blocks(data: bytes) -> Iterator[memoryview]:
    """The lines below the header, in blocks."""
    view, start = memoryview(data), data.index(b"\n") + 1
    while start < len(data):
        end = data.find(b"\n", start + _BLOCK_BYTES) + 1 or len(data)
        yield view[start:end]
        start = end


def _in_arrows_memory(block: memoryview) -> Any:
    """A copy of the bytes that Arrow owns, as a file.

    Arrow's CSV reader always has a thread. When it frees memory of Python while the command ends,
    it aborts the process.
    """
    import pyarrow as pa

    copy = pa.BufferOutputStream()
    copy.write(block)
    return pa.BufferReader(copy.getvalue())


def _header(line: bytes) -> list[str] | None:
    """The names of the columns, or None if the file needs the careful reader.

    It does if it has one column or too many, or if names are empty, repeated or padded.
    """
    try:
        names = line.decode().rstrip("\r").split(",")
    except UnicodeDecodeError:
        return None
    odd = (
        not 1 < len(names) <= MAX_COLUMNS
        or len(set(names)) < len(names)
        or any(not x or x != x.strip() for x in names)
    )
    return None if odd else names


def _odd(data: bytes) -> bool:
    """Whether the file needs the careful reader."""
    return (
        b'"' in data
        or b"\0" in data
        or b"\n" not in data
        or data.startswith(b"\xef\xbb\xbf")
        or (b"\r" in data and data.count(b"\r") != data.count(b"\r\n"))
    )


def _has_nan(column: Any) -> bool:
    """Whether a cell is the text `nan`, an error that NaN for an empty cell would hide."""
    import pyarrow.compute as pc

    return bool(pc.any(pc.is_nan(column)).as_py())


def _texts(column: Any) -> list[str]:
    """The texts of a column. If many cells are equal, they share one object to save memory."""
    encoded = column.dictionary_encode()
    if 2 * len(encoded.dictionary) > len(column):
        texts: list[str] = column.to_numpy(zero_copy_only=False).tolist()
    else:
        values = encoded.dictionary.to_numpy(zero_copy_only=False)
        texts = values[encoded.indices.to_numpy()].tolist()
    return texts
