"""The files of the disk cache: where they lie, and which of them may be opened or removed.

The cache has a folder of its own inside the one that the user names, because the user's may hold
anything. In its own folder it knows four names. Only regular files of these names are ever opened,
written or removed.
"""

from __future__ import annotations

import stat
from pathlib import Path

from artist.errors import ConfigError

FOLDER = "artist-estimates"
DATABASE = "cache.db"
OWN_NAMES = (DATABASE + "-journal", DATABASE + "-wal", DATABASE + "-shm", DATABASE)
"""All files of the cache; the database is last, so that it is removed last."""

# https://www.sqlite.org/fileformat.html, sections 1.2, 1.3 and 3
_MAGIC = b"SQLite format 3\x00"
_HEADER_BYTES = 100
_WRITE_VERSION, _READ_VERSION = 18, 19
_ROLLBACK_JOURNAL = 1
_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")


def own_folder(root: Path) -> Path:
    """The cache's own folder in the user's; both are created if absent.

    Raises:
        ConfigError: one of them cannot be created, or the own one is a link or no folder.
    """
    folder = root / FOLDER
    try:
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        is_folder = stat.S_ISDIR(folder.lstat().st_mode)
    except (OSError, ValueError) as cause:
        raise ConfigError(
            f"{root}: the cache cannot be kept there ({cause}); set ARTIST_CACHE_DIR to a writable "
            "folder"
        ) from cause
    if not is_folder:
        raise ConfigError(
            f"{folder}: is not a folder, so no estimate is kept there; move it away, or set "
            "ARTIST_CACHE_DIR to another folder"
        )
    return folder


def refuse_what_is_no_file(folder: Path) -> None:
    """Refuse links, pipes, devices and folders under the cache's own names.

    SQLite would follow a link and write to what it points to.

    Raises:
        ConfigError: names the first one.
    """
    for name in OWN_NAMES:
        path = folder / name
        mode = _mode(path)
        if mode is not None and not stat.S_ISREG(mode):
            raise ConfigError(
                f"{path}: is not a regular file, so the cache is not used; move it away, or set "
                "ARTIST_CACHE_DIR to another folder"
            )


def looks_sound(folder: Path) -> bool:
    """Whether SQLite may open the database. An absent or empty one is sound.

    Two things that artist never writes are refused. A database in WAL mode has an index in mapped
    memory: truncating that file kills every process that uses it. A journal that names another
    file lets SQLite delete that file.
    """
    database, journal = folder / DATABASE, folder / f"{DATABASE}-journal"
    header = _first_bytes(database)
    if header and (
        len(header) < _HEADER_BYTES
        or not header.startswith(_MAGIC)
        or header[_WRITE_VERSION] != _ROLLBACK_JOURNAL
        or header[_READ_VERSION] != _ROLLBACK_JOURNAL
    ):
        return False
    return not _last_bytes(journal).endswith(_JOURNAL_MAGIC)


def remove_database(folder: Path) -> None:
    """Remove the cache's own regular files, and nothing else.

    Raises:
        OSError: one of them cannot be removed.
    """
    for name in OWN_NAMES:
        path = folder / name
        mode = _mode(path)
        if mode is not None and stat.S_ISREG(mode):
            path.unlink(missing_ok=True)


def _mode(path: Path) -> int | None:
    try:
        return path.lstat().st_mode
    except FileNotFoundError:
        return None


def _first_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_HEADER_BYTES)
    except FileNotFoundError:
        return b""


def _last_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - len(_JOURNAL_MAGIC)))
            return file.read()
    except FileNotFoundError:
        return b""
