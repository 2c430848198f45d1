"""The disk cache: estimates kept between runs, by the digest of the whole query.

diskcache keeps them as JSON in a folder of their own, which many processes may share. The cache
never ends a run. It touches no files of other programs, sets aside a database that is damaged or
not artist's, and where it cannot be used, the run goes on without it.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

from artist.errors import ConfigError
from artist.estimates.query import AxisTraffic, Burst, Estimate, LatencyQuery
from artist.workload.layers import Workload

# Part of every key. Raise it when the meaning of a query or of an estimate changes.
SCHEMA = 8
# The file is damaged, not a database, or has other tables (https://www.sqlite.org/rescode.html).
_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR}
# What decoding raises for an entry that is not an estimate.
_NO_ESTIMATE = (KeyError, TypeError, ValueError, zlib.error)

FOLDER = "estimates"
"""The cache's own folder inside the folder that the user names, which may hold other files."""


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
    """SHA-256 of everything that an estimate depends on, including its source.

    An estimate with a traffic profile has another key than the same estimate without one.
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
    """Like `asdict`, but without deep copies and without fields that do not compare."""
    return {field.name: getattr(part, field.name) for field in fields(part) if field.compare}


class DiskStore:
    """An `EstimateStore` in a folder. `set_aside` is where a damaged database was moved, if any.

    Raises:
        ConfigError: the folder cannot be used, or another process has locked the database.
    """

    def __init__(self, folder: Path) -> None:
        self.set_aside: Path | None = None
        self._folder = folder / FOLDER
        self._cache: Any = self._open()

    def get(self, query: LatencyQuery, source: str, *, profile: bool = False) -> Estimate | None:
        """A kept estimate of this source; None if there is none. Never raises."""
        if self._cache is None:
            return None
        try:
            return self._read(query_key(query, source, profile=profile))
        except Exception as cause:  # noqa: BLE001 - whatever is wrong with a cache, a run goes on
            self._give_up(cause)
            return None

    def put(self, query: LatencyQuery, estimate: Estimate, *, profile: bool = False) -> None:
        """Keep an estimate, if that is possible. Never raises."""
        if self._cache is None:
            return
        try:
            key = query_key(query, estimate.source, profile=profile)
            self._cache.set(key, asdict(estimate))
        except Exception as cause:  # noqa: BLE001 - as above
            self._give_up(cause)

    def verify(self) -> tuple[int, int]:
        """Read all entries and drop damaged ones. Returns the numbers of sound and damaged entries.

        Raises:
            ConfigError: the cache cannot be used.
        """
        sound = damaged = 0
        with self._in_use():
            for key in list(self._cache):
                if self._read(key) is None:
                    damaged += 1
                else:
                    sound += 1
        return sound, damaged

    def info(self) -> dict[str, Any]:
        """Folder, number of entries and size.

        Raises:
            ConfigError: the cache cannot be used.
        """
        with self._in_use():
            entries, size = len(self._cache), self._cache.volume()
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
        with self._in_use():
            return int(self._cache.clear())

    def close(self) -> None:
        """Close the files."""
        cache, self._cache = self._cache, None
        if cache is not None:
            with suppress(Exception):
                cache.close()

    def _read(self, key: str) -> Estimate | None:
        """The estimate of a key. An entry that is not an estimate is dropped."""
        try:
            kept = self._cache.get(key)
            return None if kept is None else _decoded(kept)
        except _NO_ESTIMATE:
            self._cache.delete(key)
            return None

    def _open(self) -> Any:
        """Open the cache. A damaged one is set aside, once, and a new one is started."""
        from artist.io.json_cache import open_json_cache

        for _ in range(2):
            try:
                return open_json_cache(self._folder)
            except Exception as cause:
                if self.set_aside or not _is_damage(cause):
                    raise self._unusable(cause) from cause
                self._move_away()
        raise AssertionError("a new cache is sound")

    @contextmanager
    def _in_use(self) -> Iterator[None]:
        """Turn any failure of the cache into a ConfigError."""
        try:
            yield
        except Exception as cause:
            self._give_up(cause)
            raise self._unusable(cause) from cause

    def _give_up(self, cause: Exception) -> None:
        """Stop using the cache. A damaged one is set aside, so the next run starts a new one."""
        self.close()
        if _is_damage(cause):
            with suppress(ConfigError):
                self._move_away()

    def _move_away(self) -> None:
        """Rename the cache's folder, so that nothing in it is lost."""
        number = 1
        while (aside := self._folder.with_name(f"{FOLDER}-damaged-{number}")).exists():
            number += 1
        try:
            self._folder.rename(aside)
        except OSError as cause:
            raise self._unusable(cause) from cause
        self.set_aside = aside

    def _unusable(self, cause: Exception) -> ConfigError:
        return ConfigError(
            f"{self._folder}: the cache cannot be used now ({cause or type(cause).__name__}); try "
            "again later, or set ARTIST_CACHE_DIR to another folder"
        )


@contextmanager
def open_store(*, enabled: bool = True) -> Iterator[DiskStore | None]:
    """The disk cache; None if it is disabled or cannot be used."""
    store = None
    if enabled:
        with suppress(ConfigError):
            store = DiskStore(cache_dir())
    try:
        yield store
    finally:
        if store is not None:
            store.close()


def _decoded(kept: dict[str, Any]) -> Estimate:
    """The estimate of an entry; raises one of `_NO_ESTIMATE` if it is none."""
    sent, profile = kept["bytes_per_dimension"], kept["profile"]
    return Estimate(
        finish_ns=int(kept["finish_ns"]),
        compute_ns=int(kept["compute_ns"]),
        source=kept["source"],
        bytes_per_dimension=None if sent is None else tuple(sent),
        profile=None if profile is None else tuple(Burst(**burst) for burst in profile),
        from_cache=True,
        order=kept.get("order", ""),
        axes=_axes(kept.get("axes")),
    )


def _axes(kept: list[dict[str, int]] | None) -> tuple[AxisTraffic, ...] | None:
    return None if kept is None else tuple(AxisTraffic(**axis) for axis in kept)


def _is_damage(cause: Exception) -> bool:
    """Whether the database is damaged or not artist's, unlike locked, forbidden or full disks."""
    code = getattr(cause, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in _DAMAGE
