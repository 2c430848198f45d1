"""The one door to diskcache: JSON by text keys, in one folder. Import it only to open a cache."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import diskcache  # noqa: TID253 - this module is the door, and is itself imported late
from diskcache.core import MODE_PICKLE  # noqa: TID253


class JsonOnlyDisk(diskcache.JSONDisk):  # type: ignore[misc]  # the library is untyped
    """Keys and values are JSON. A pickle, which diskcache would load, is refused."""

    def get(self, key: Any, raw: Any) -> Any:
        """The key of a row."""
        if not raw:
            raise ValueError("a pickled key")
        return super().get(key, raw)

    def fetch(self, mode: Any, filename: Any, value: Any, read: bool) -> Any:
        """The value of a row."""
        if mode == MODE_PICKLE:
            raise ValueError("a pickled value")
        return super().fetch(mode, filename, value, read)


def open_json_cache(folder: Path) -> diskcache.Cache:
    """The cache in a folder, which is made if absent.

    Raises:
        OSError, sqlite3.Error, diskcache.Timeout: it cannot be used.
    """
    # No fsync: it would take most of the start of a short run, and a cache that a power cut damages
    # is set aside. 5 s is thousands of times as long as a write holds its lock.
    return diskcache.Cache(str(folder), timeout=5, disk=JsonOnlyDisk, sqlite_synchronous=0)
