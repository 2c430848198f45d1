"""Opens and reads the files that users name. It never blocks and never reads a device.

`read_text` is for settings and other small texts. `read_bytes` and `decode` are for data files
(traces, recorded tables), which may be large.
"""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from artist.errors import ArtistError, ConfigError, TraceError, nearest, shortened

# The largest shipped document has 8 kB, one that lists a million machines one by one 3 MB. A larger
# file is a mistake.
MAX_DOCUMENT_BYTES = 4 * 2**20

_ALIKE = 0.85
"""How alike two file names must be for one to be suggested for the other, as a share of letters."""


def open_binary(path: Path) -> BinaryIO:
    """Open a file, or a pipe that has a writer, for reading.

    Raises:
        OSError: it cannot be read, or it is a folder, a device, or a pipe without a writer.
        ValueError: the path holds a zero byte.
    """
    # Without O_NONBLOCK, opening a pipe that has no writer would wait forever.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | os.O_CLOEXEC)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(mode) and not stat.S_ISFIFO(mode):
            raise OSError(errno.EINVAL, "a device, not a file")
        os.set_blocking(descriptor, True)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def is_file(path: Path) -> bool:
    """Whether the file exists. False also for a name that no file can have."""
    return os.path.isfile(path)  # noqa: PTH113 - Path.is_file raises when a name is too long


def exists(path: Path) -> bool:
    """Whether a file or folder exists. False also for a name that none can have."""
    return os.path.exists(path)  # noqa: PTH110 - as above


def cannot_be_read(path: Path, cause: OSError | ValueError) -> str:
    """The message about a file that cannot be opened; it suggests a file with a similar name."""
    reason = getattr(cause, "strerror", None) or cause
    near = None
    if isinstance(cause, FileNotFoundError):
        with contextlib.suppress(OSError), os.scandir(path.parent) as beside:
            near = nearest(path.name, [one.name for one in beside if one.is_file()], _ALIKE)
    remedy = f"did you mean {path.parent / near}?" if near else "give a readable file"
    return f"{path}: cannot be read ({reason}); {remedy}"


def read_text(
    path: Path, error: type[ArtistError] = ConfigError, *, most_bytes: int = MAX_DOCUMENT_BYTES
) -> str:
    r"""The content of a text file, with `\r\n` as `\n` and without a byte order mark.

    Raises:
        ArtistError: of class `error`, when the file cannot be read as UTF-8 text or is larger
            than `most_bytes`.
    """
    try:
        with open_binary(path) as file:
            data = file.read(most_bytes + 1)
    except (OSError, ValueError) as cause:
        raise error(cannot_be_read(path, cause)) from cause
    if len(data) > most_bytes:
        raise error(f"{path}: more than {most_bytes >> 20} MiB; split it or list less")
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as cause:
        line = data.count(b"\n", 0, cause.start) + 1
        raise error(f"{path}:{line}: not UTF-8 text (byte {cause.start})") from cause


def each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of a JSON text, for `json.loads(text, object_pairs_hook=each_key_once)`.

    Raises:
        ValueError: a key is given twice.
    """
    record = dict(pairs)
    if len(record) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"a key is given twice: {shortened(twice)}")
    return record


def read_json(path: Path) -> Mapping[str, Any]:
    """The object in a JSON file that artist wrote beside the tables of a run.

    Raises:
        TraceError: the file cannot be read, or holds no JSON object; names the file.
    """
    try:
        data = json.loads(read_text(path, TraceError))
    except (ValueError, RecursionError) as cause:
        raise TraceError(f"{path}: is not valid JSON ({cause})") from cause
    if not isinstance(data, dict):
        raise TraceError(f"{path}: expected a JSON object, got {type(data).__name__}")
    return data


def read_bytes(path: Path) -> bytes:
    """All bytes of a file.

    Raises:
        TraceError: the file is missing, a folder, empty or not readable.
    """
    try:
        with open_binary(path) as file:
            data = file.read()
    except (OSError, ValueError) as error:
        raise TraceError(cannot_be_read(path, error)) from error
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
    """A number, or NaN for a cell that is not a number.

    Unlike Python's `float`, it does not accept `1_000`, True, or digits of other scripts.
    """
    if isinstance(cell, bool) or (isinstance(cell, str) and ("_" in cell or not cell.isascii())):
        return math.nan
    try:
        return float(cell)  # type: ignore[arg-type]  # what float refuses is caught
    except (TypeError, ValueError, OverflowError):
        return math.nan
