"""Output files: whole or not at all.

Everything that artist writes for a user appears under its name only when it is complete. It is
written under a temporary name in the same folder and then renamed. Whole run directories are
written the same way by `artist/results/run_directory.py`.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from artist.errors import ConfigError

_PARTIAL = ".partial"


def check_file(path: Path, option: str) -> None:
    """Refuse a path that cannot be written, before the work on the file's content begins.

    Raises:
        ConfigError: the path is a folder, or its folder is missing or not writable.
    """
    folder = path.absolute().parent
    if path.is_dir():
        raise ConfigError(f"{option} {path}: is a folder; give a file name")
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigError(f"{option} {path}: {folder} is not a writable folder; choose another")


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary name to write to. It becomes `path` when the block ends without an error.

    Raises:
        ConfigError: the file cannot be written.
    """
    # The process id keeps two writers of one path apart.
    partial = path.with_name(f"{_partial_prefix(path)}{os.getpid()}{_PARTIAL}")
    try:
        try:
            yield partial
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as cause:
        reason = cause.strerror or str(cause)
        raise ConfigError(
            f"{path}: cannot be written ({reason}); make room, or give a path in a writable folder"
        ) from cause


def write_whole(path: Path, content: bytes | str) -> None:
    """Write a file at once; text as UTF-8.

    Raises:
        ConfigError: the file cannot be written.
    """
    data = content.encode() if isinstance(content, str) else content
    with whole_file(path) as partial:
        partial.write_bytes(data)


def partial_files(path: Path) -> list[Path]:
    """Temporary files of writers of `path` that are still writing or were killed."""
    return sorted(path.parent.glob(f"{glob.escape(_partial_prefix(path))}*{_PARTIAL}"))


def _partial_prefix(path: Path) -> str:
    """How the temporary names for `path` begin. Some file systems allow 255 bytes in a name."""
    return f".{path.name[:40]}."
