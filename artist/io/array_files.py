"""Arrays in a file: `.npz` without pickles, so reading one executes nothing.

A text is an array of one Unicode string.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from artist.errors import ConfigError
from artist.io.reading import read_bytes
from artist.io.writing import write_whole

MOST_BYTES = 256 * 2**20
"""64 million 32-bit numbers. Networks that artist trains have a few thousand."""

MOST_ARRAYS = 1000
"""Networks and checkpoints of artist have fewer than a hundred. 60,000 take seconds to read."""


def write_arrays(path: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write a file, whole or not at all; the same arrays in the same order give the same bytes.

    Raises:
        ConfigError: the file cannot be written.
    """
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    write_whole(path, buffer.getvalue())


def read_arrays(path: Path, remedy: str) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a file. `remedy` ends the message about a broken file.

    Raises:
        TraceError: the file cannot be read.
        ConfigError: it is not a whole `.npz` file of arrays, or is too large.
    """
    data = read_bytes(path)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            size = max(len(data), sum(entry.file_size for entry in entries))
        if size <= MOST_BYTES and len(entries) <= MOST_ARRAYS:
            with np.load(io.BytesIO(data), allow_pickle=False) as file:
                return {name: np.asarray(file[name]) for name in file.files}
    except Exception as cause:  # broken bytes make zipfile and numpy raise anything
        raise ConfigError(f"{path}: not a whole .npz file of arrays; {remedy}") from cause
    if size <= MOST_BYTES:
        raise ConfigError(f"{path}: {len(entries):,} arrays, at most {MOST_ARRAYS:,}; {remedy}")
    raise ConfigError(f"{path}: unpacks to more than {MOST_BYTES >> 20} MiB; {remedy}")
