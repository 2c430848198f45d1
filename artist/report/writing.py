"""Output files: whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from artist.errors import ConfigError


def check_file(path: Path, option: str) -> None:
    """Refuse, before the work, a file that could not be written after it.

    Raises:
        ConfigError: it is a folder, or its folder is none or not writable.
    """
    folder = path.absolute().parent
    if path.is_dir():
        raise ConfigError(f"{option} {path}: is a folder; give a file name")
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigError(f"{option} {path}: {folder} is not a writable folder; choose another")


def write_whole(path: Path, content: bytes, option: str) -> None:
    """Write under a temporary name, then rename.

    Raises:
        ConfigError: it cannot be written.
    """
    check_file(path, option)
    try:
        handle, scratch = tempfile.mkstemp(prefix=f".{path.name[:40]}-", dir=path.absolute().parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            Path(scratch).chmod(0o644)
            Path(scratch).replace(path)
        finally:
            Path(scratch).unlink(missing_ok=True)
    except OSError as cause:
        raise ConfigError(
            f"{option} {path}: cannot be written ({cause.strerror or cause})"
        ) from cause
