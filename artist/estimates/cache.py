"""The disk cache: estimates kept between runs, by the digest of the whole query.

The cache may be slow or absent. It is never wrong and never ends a run. An entry that is truncated,
foreign or damaged is dropped and computed again. A damaged database is replaced by an empty one.
Where neither helps, a run goes on without the cache. Many processes may share one folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from artist.errors import ConfigError
from artist.estimates import cache_files
from artist.estimates.cache_entry import decode, encode
from artist.estimates.query import Estimate, LatencyQuery
from artist.workload.layers import Workload

if TYPE_CHECKING:
    from artist.estimates.text_cache import TextCache

# Part of every key. Raise it when the meaning of a query or of an estimate changes.
SCHEMA = 2

_T = TypeVar("_T")

# Why SQLite may fail on a sound database. All other errors are damage; so is a statement that does
# not end, since a database that slow is of no use. https://www.sqlite.org/rescode.html
_NO_DAMAGE = {
    sqlite3.SQLITE_BUSY: "another process has locked it",
    sqlite3.SQLITE_LOCKED: "another process has locked it",
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_READONLY: "it cannot be written",
    sqlite3.SQLITE_PERM: "it may not be read",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened",
    sqlite3.SQLITE_AUTH: "it may not be read",
    sqlite3.SQLITE_IOERR: "the disk does not answer",
    sqlite3.SQLITE_NOMEM: "memory is short",
}


def cache_dir() -> Path:
    """`ARTIST_CACHE_DIR`, else `artist` in the platform's cache folder.

    Raises:
        ConfigError: there is no home folder to look in.
    """
    try:
        return _cache_dir()
    except RuntimeError as cause:
        raise ConfigError(f"there is no cache folder ({cause}); set ARTIST_CACHE_DIR") from cause


def _cache_dir() -> Path:
    if chosen := os.environ.get("ARTIST_CACHE_DIR"):
        return Path(chosen).expanduser()
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "artist"


def query_key(query: LatencyQuery, source: str, *, profile: bool = False) -> str:
    """SHA-256 of everything that the estimate depends on, its source included.

    An estimate with its traffic profile has a key of its own.
    """
    parts = {**_fields(query), "workload": _workload_digest(query.workload)}
    return _digest([SCHEMA, source, parts, *(["profile"] if profile else [])])


# A run asks about few workloads on many placements, and a workload is nearly all of a query's text.
@lru_cache(maxsize=64)
def _workload_digest(workload: Workload) -> str:
    return _digest(workload)


def _digest(part: object) -> str:
    text = json.dumps(part, default=_fields, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _fields(part: Any) -> dict[str, Any]:
    """The same as `asdict`, but without copying everything that is inside."""
    return {field.name: getattr(part, field.name) for field in fields(part)}


class DiskStore:
    """An `EstimateStore` in a folder. `replaced` says whether a damaged database was replaced.

    Raises:
        ConfigError: the folder or the database in it cannot be used.
    """

    def __init__(self, folder: Path) -> None:
        self.replaced = False
        self._why_not = ""
        self._folder = cache_files.own_folder(folder)
        self._cache: TextCache | None = self._open()

    def get(self, query: LatencyQuery, source: str, *, profile: bool = False) -> Estimate | None:
        """A kept estimate; None if there is none, or none that can be trusted. Never raises."""
        key = query_key(query, source, profile=profile)
        return self._quietly(lambda cache: _sound(cache, key, source))

    def put(self, query: LatencyQuery, estimate: Estimate, *, profile: bool = False) -> None:
        """Keep an estimate, if that is possible. Never raises."""
        from artist.estimates.text_cache import MAX_ENTRY_BYTES

        key = query_key(query, estimate.source, profile=profile)
        text = encode(estimate, key)
        if len(text) < MAX_ENTRY_BYTES:
            self._quietly(lambda cache: cache.set(key, text))

    def verify(self) -> tuple[int, int]:
        """Number of sound entries and of damaged entries. Damaged entries are dropped.

        A damaged database is replaced, and all its entries count as damaged.

        Raises:
            ConfigError: the cache cannot be used.
        """
        return self._loudly(_verify, instead=lambda: (0, 0))

    def info(self) -> dict[str, Any]:
        """Folder, number of entries and size.

        Raises:
            ConfigError: the cache cannot be used.
        """
        entries, size = self._loudly(
            lambda cache: (len(cache), cache.volume()), instead=lambda: (0, 0)
        )
        return {
            "folder": str(self._folder),
            "entries": entries,
            "size_bytes": size,
            "schema": SCHEMA,
        }

    def clear(self) -> int:
        """Drop all entries and return how many there were.

        Raises:
            ConfigError: the cache cannot be used.
        """
        return self._loudly(lambda cache: cache.clear(), instead=lambda: 0)

    def close(self) -> None:
        """Close the files."""
        cache, self._cache = self._cache, None
        if cache is not None:
            with suppress(Exception):
                cache.close()

    def _quietly(self, ask: Callable[[TextCache], _T]) -> _T | None:
        """What the cache answers; None without one. After a failure it is replaced or closed."""
        if self._cache is None:
            return None
        try:
            return ask(self._cache)
        except Exception as cause:  # noqa: BLE001 - whatever is wrong with a cache, a run goes on
            with suppress(ConfigError):
                self._mend(cause)
            return None

    def _loudly(self, ask: Callable[[TextCache], _T], instead: Callable[[], _T]) -> _T:
        """What the cache answers; `instead` if its database was damaged and is now replaced."""
        if self._cache is None:
            raise self._unusable(self._why_not)
        try:
            return ask(self._cache)
        except Exception as cause:  # noqa: BLE001 - as above
            self._mend(cause)
            return instead()

    def _mend(self, cause: Exception) -> None:
        """Replace a damaged database, once.

        Raises:
            ConfigError: the database is sound but cannot be used, or was replaced before.
        """
        self.close()
        self._replace_after(cause)
        self._cache = self._open()

    def _open(self) -> TextCache:
        """The cache. If its database is damaged, a new one is started."""
        from artist.estimates.text_cache import TextCache

        while True:
            cache_files.refuse_what_is_no_file(self._folder)
            try:
                if not cache_files.looks_sound(self._folder):
                    raise ValueError("it is damaged")
                return TextCache(self._folder / cache_files.DATABASE)
            except Exception as cause:  # noqa: BLE001 - as above
                self._replace_after(cause)

    def _replace_after(self, cause: Exception) -> None:
        self._why_not = _no_damage(cause)
        if self._why_not or self.replaced:
            self._why_not = self._why_not or "it is damaged again"
            raise self._unusable(self._why_not) from cause
        self.replaced = True
        try:
            cache_files.remove_database(self._folder)
        except OSError as cause:
            raise self._unusable(str(cause)) from cause

    def _unusable(self, why: str) -> ConfigError:
        return ConfigError(
            f"{self._folder / cache_files.DATABASE}: the cache cannot be used now ({why}); try "
            "again later, or set ARTIST_CACHE_DIR to another folder"
        )


@contextmanager
def open_store(*, enabled: bool = True) -> Iterator[DiskStore | None]:
    """The disk cache; None if it is disabled or its folder cannot be used."""
    store = _opened() if enabled else None
    try:
        yield store
    finally:
        if store is not None:
            store.close()


def _opened() -> DiskStore | None:
    try:
        return DiskStore(cache_dir())
    except Exception:  # noqa: BLE001 - whatever is wrong with a cache, a run goes on without it
        return None


def _sound(cache: TextCache, key: str, source: str) -> Estimate | None:
    """The entry of a key, if it can be trusted; otherwise the entry is dropped.

    Raises:
        Exception: the database is locked or damaged.
    """
    try:
        text = cache.get(key)
        return None if text is None else decode(text, key, source)
    except ValueError:
        cache.delete(key)
        return None


def _verify(cache: TextCache) -> tuple[int, int]:
    """As `DiskStore.verify`, for a database that is whole."""
    if not cache.is_whole():
        raise ValueError("it is damaged")
    sound = damaged = 0
    for row in cache.rows():
        try:
            decode(row.text, row.key)
            sound += 1
        except ValueError:
            cache.drop(row)
            damaged += 1
    return sound, damaged


def _no_damage(cause: BaseException | None) -> str:
    """Why SQLite failed on a sound database; empty if the database is damaged.

    diskcache and failed rollbacks hide the first error, so all that led to this one are asked.
    """
    while cause is not None:
        code = getattr(cause, "sqlite_errorcode", None)
        if code is not None and (why := _NO_DAMAGE.get(code & 0xFF)):
            return why
        if isinstance(cause, OSError | MemoryError):
            return str(cause) or "memory is short"
        cause = cause.__context__
    return ""
