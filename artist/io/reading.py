"""Opening what users name: no waiting, no surprises, one sentence when it cannot be read."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

from artist.errors import ArtistError, ConfigError

# The largest document shipped has 8 kB; a cluster that lists each of a million machines on its
# own has 3 MB. What is larger is a mistake.
MAX_DOCUMENT_BYTES = 4 * 2**20


def open_binary(path: Path) -> BinaryIO:
    """Open a file, or a pipe that somebody writes to, for reading.

    Raises:
        OSError: it cannot be read, is a folder, a device, or a pipe without a writer (which
            would be waited for until the end of days).
        ValueError: the path holds a zero byte.
    """
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | os.O_CLOEXEC)
    try:
        mode = os.fstat(handle).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(mode) and not stat.S_ISFIFO(mode):
            raise OSError(errno.EINVAL, "a device, not a file")
        os.set_blocking(handle, True)
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def is_file(path: Path) -> bool:
    """Whether there is such a file; False too for names that no file can have."""
    return os.path.isfile(path)  # noqa: PTH113 - Path.is_file raises where a name is too long


def exists(path: Path) -> bool:
    """Whether there is anything of this name; False too for names that nothing can have."""
    return os.path.exists(path)  # noqa: PTH110 - as above


def read_text(path: Path, error: type[ArtistError] = ConfigError) -> str:
    """A text file's content.

    Raises:
        ArtistError: of class `error`, when it cannot be read as UTF-8 text or is larger
            than `MAX_DOCUMENT_BYTES`.
    """
    try:
        with open_binary(path) as file:
            data = file.read(MAX_DOCUMENT_BYTES + 1)
    except (OSError, ValueError) as cause:
        reason = getattr(cause, "strerror", None) or cause
        raise error(f"{path}: cannot be read ({reason})") from cause
    if len(data) > MAX_DOCUMENT_BYTES:
        raise error(f"{path}: more than {MAX_DOCUMENT_BYTES >> 20} MiB; split it or list less")
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as cause:
        line = data.count(b"\n", 0, cause.start) + 1
        raise error(f"{path}:{line}: not UTF-8 text (byte {cause.start})") from cause
