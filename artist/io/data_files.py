"""Data files (traces, recorded tables): read whole and decoded, or one `TraceError` says why not.

YAML settings are read by `documents.py`.
"""

from __future__ import annotations

import math
from pathlib import Path

from artist.errors import TraceError
from artist.io.reading import open_binary


def read_bytes(path: Path) -> bytes:
    """All bytes of a file.

    Raises:
        TraceError: the file is missing, a folder, empty or not readable.
    """
    try:
        with open_binary(path) as file:
            data = file.read()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise TraceError(f"{path}: cannot be read ({reason}); give a readable file") from error
    if not data and path.is_fifo():
        raise TraceError(f"{path}: a pipe without a writer, or one that wrote nothing; give a file")
    if not data.strip():
        raise TraceError(f"{path}: the file is empty; give one with data in it")
    return data


def decode(path: Path, data: bytes) -> str:
    """The UTF-8 text in `data`, which was read from `path`.

    Raises:
        TraceError: the bytes are not UTF-8 text.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise TraceError(
            f"{path}:{line}: byte {data[error.start]:#04x} is not UTF-8 text; "
            "save the file as UTF-8 (a compressed file must be unpacked first)"
        ) from error
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise TraceError(f"{path}:{line}: a zero byte, expected text; give a text file")
    return text


def as_float(cell: object) -> float:
    """A number, or NaN for a cell that is none. Python would accept `1_000` and True: we do not."""
    if isinstance(cell, bool) or (isinstance(cell, str) and "_" in cell):
        return math.nan
    try:
        return float(cell)  # type: ignore[arg-type]  # what float refuses is caught
    except (TypeError, ValueError, OverflowError):
        return math.nan
