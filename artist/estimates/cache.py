"""The disk cache: estimates kept between runs, by the digest of the whole query.

The cache never changes a result. An entry that is truncated, foreign or damaged is dropped and
computed again. Nothing is ever unpickled, since a pickle can run any code. Many processes may
share one folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from artist.estimates.query import Burst, Estimate, LatencyQuery

# Part of every key. Raise it when the meaning of a query or of an estimate changes.
SCHEMA = 1

_DAMAGE = (sqlite3.Error, OSError, ValueError, KeyError, TypeError)


def cache_dir() -> Path:
    """`ARTIST_CACHE_DIR`, else `artist` in the platform's cache folder."""
    if chosen := os.environ.get("ARTIST_CACHE_DIR"):
        return Path(chosen)
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
    whole = [SCHEMA, source, query, *(["profile"] if profile else [])]
    text = json.dumps(whole, default=_fields, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _fields(part: Any) -> dict[str, Any]:
    """The same as `asdict`, but without copying everything that is inside."""
    return {field.name: getattr(part, field.name) for field in fields(part)}


class DiskStore:
    """An `EstimateStore` in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._cache = _open(folder)

    def get(self, query: LatencyQuery, source: str, *, profile: bool = False) -> Estimate | None:
        """A kept estimate; None if there is none, or none that can be trusted."""
        key = query_key(query, source, profile=profile)
        try:
            text = self._cache.get(key)
            return None if text is None else _decode(text, key, source)
        except _DAMAGE:
            self._drop(key)
            return None

    def put(self, query: LatencyQuery, estimate: Estimate, *, profile: bool = False) -> None:
        """Keep an estimate. A cache that cannot be written stays as it is, without an error."""
        key = query_key(query, estimate.source, profile=profile)
        try:
            self._cache.set(key, _encode(estimate, key))
        except _DAMAGE:
            return

    def verify(self) -> tuple[int, int]:
        """Number of sound entries and of damaged entries. Damaged entries are dropped."""
        sound = damaged = 0
        for key in list(self._cache.iterkeys()):
            try:
                text = self._cache.get(key)
                _decode(text, key, json.loads(text)["source"])
                sound += 1
            except _DAMAGE:
                self._drop(key)
                damaged += 1
        return sound, damaged

    def info(self) -> dict[str, Any]:
        """Folder, number of entries and size."""
        return {
            "folder": str(self._folder),
            "entries": len(self._cache),
            "size_bytes": self._cache.volume(),
            "schema": SCHEMA,
        }

    def clear(self) -> int:
        """Drop all entries and return how many there were."""
        return int(self._cache.clear())

    def close(self) -> None:
        """Close the files."""
        self._cache.close()

    def _drop(self, key: Any) -> None:
        try:
            self._cache.delete(key)
        except _DAMAGE:
            return


@contextmanager
def open_store(*, enabled: bool = True) -> Iterator[DiskStore | None]:
    """The disk cache; None if it is disabled or its folder cannot be used."""
    if not enabled:
        yield None
        return
    try:
        store = DiskStore(cache_dir())
    except OSError:
        yield None
        return
    try:
        yield store
    finally:
        store.close()


def _open(folder: Path) -> Any:
    """The cache in a folder. If its database is damaged beyond use, a new one is started.

    Raises:
        OSError: the folder cannot be created or written.
    """
    for attempt in (1, 2):
        try:
            return _unpickled_cache(folder)
        except sqlite3.Error as cause:
            # An OperationalError says that the database is busy or out of reach: another process
            # may be using it. Only a database that is itself damaged is deleted.
            if attempt == 2 or isinstance(cause, sqlite3.OperationalError):
                raise OSError(f"{folder}: unusable cache ({cause})") from cause
            shutil.rmtree(folder, ignore_errors=True)
    raise AssertionError("unreachable")


def _unpickled_cache(folder: Path) -> Any:
    import diskcache

    class TextDisk(diskcache.Disk):  # type: ignore[misc]  # the library is untyped
        """Keys and values are text. Anything else is damage and is never unpickled."""

        def get(self, key: Any, raw: bool) -> Any:
            if not raw or not isinstance(key, str):
                raise ValueError("foreign key")
            return key

        def fetch(self, mode: int, filename: str | None, value: Any, read: bool) -> Any:
            if mode == diskcache.core.MODE_PICKLE:
                raise ValueError("foreign value")
            return super().fetch(mode, filename, value, read)

    return diskcache.Cache(str(folder), disk=TextDisk, timeout=10)


def _encode(estimate: Estimate, key: str) -> str:
    body = {
        "finish_ns": estimate.finish_ns,
        "compute_ns": estimate.compute_ns,
        "source": estimate.source,
        "bytes_per_dimension": estimate.bytes_per_dimension,
        "profile": None if estimate.profile is None else [asdict(b) for b in estimate.profile],
    }
    return json.dumps({**body, "check": _checksum(body, key)})


def _decode(text: str, key: str, source: str) -> Estimate:
    body = json.loads(text)
    if body.pop("check") != _checksum(body, key) or body["source"] != source:
        raise ValueError("damaged entry")
    sent, profile = body["bytes_per_dimension"], body["profile"]
    return Estimate(
        finish_ns=body["finish_ns"],
        compute_ns=body["compute_ns"],
        source=source,
        bytes_per_dimension=None if sent is None else tuple(sent),
        profile=None if profile is None else tuple(Burst(**burst) for burst in profile),
        from_cache=True,
    )


def _checksum(body: dict[str, Any], key: str) -> str:
    text = key + json.dumps(body, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
