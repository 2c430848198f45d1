"""`diskcache.Cache`, held to what artist needs: texts under texts, in one SQLite file.

diskcache takes its settings from the file, lets rows name files that it reads and deletes,
unpickles values, maps the file into memory, and waits a minute for a lock. A file may be damaged
or crafted. So this class takes every setting from the code, refuses rows that artist did not write,
keeps values in the database, and ends a statement that does not end (decision 16).

Imported only where a cache is opened, since diskcache loads slowly.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from itertools import chain, repeat
from pathlib import Path
from typing import Any, NamedTuple

import diskcache  # noqa: TID253 - this module is the door, and is itself imported late
from diskcache.core import DEFAULT_SETTINGS, ENOVAL, METADATA, MODE_RAW  # noqa: TID253

WAIT_S = 5.0
"""How long to wait for a lock. A write holds it for a millisecond, so 5 s are thousands of them."""

MAX_STEPS = 1_000_000_000
"""Steps of SQLite's machine that one statement may take, about a minute. The longest statement
checks all indexes and takes 30 steps a row, so 100 million for the 3 million rows that fill 1 GiB.
More is a damaged tree that has a loop."""

MAX_ENTRY_BYTES = 16 * 2**20
"""The longest text that is kept. A profile of 100,000 bursts has 8.7 MB."""

_ROW_BYTES = MAX_ENTRY_BYTES + 4096  # the key and the other columns
_STEPS_AT_ONCE = 100_000
_PAGE = 100  # rows that are read at once

# diskcache's `sqlite_` settings are noted in the database, and `_PRAGMAS` says what holds.
# - Rollback journal: a WAL has an index in mapped memory, see `cache_files.looks_sound`.
# - No fsync: a power cut may damage the cache, which is noticed; the disk's speed never counts.
# - No automatic vacuum: each connection that asks for it writes. `clear` shrinks the file.
SETTINGS = {
    **DEFAULT_SETTINGS,
    "statistics": 0,
    "tag_index": 0,
    "sqlite_auto_vacuum": 0,
    "sqlite_journal_mode": "delete",
    "sqlite_mmap_size": 0,
    "sqlite_synchronous": 0,
    "disk_min_file_size": MAX_ENTRY_BYTES,
}
_PRAGMAS = (
    "synchronous = OFF",
    "mmap_size = 0",
    "cache_size = 8192",
    "trusted_schema = OFF",
    "cell_size_check = ON",
    "temp_store = MEMORY",
)


Layout = tuple[list[Any], list[Any]]
"""Tables, indexes and triggers of a database, and its settings."""


class DamagedDatabaseError(Exception):
    """The file is a database, but not one that artist has made."""


class ForeignRowError(ValueError):
    """A row that artist did not write."""


class Row(NamedTuple):
    """A row as it lies in the table. `text` is None unless artist can have written the row."""

    rowid: int
    key: Any
    text: str | None


class TextDisk(diskcache.Disk):  # type: ignore[misc]  # the library is untyped
    """Keys and values are texts in the database. No file is read, written or removed."""

    def put(self, key: Any) -> tuple[str, bool]:
        """The key as it is kept."""
        if type(key) is not str:
            raise TypeError("a key is a text")
        return key, True

    def get(self, key: Any, raw: Any) -> str:
        """The key of a row."""
        if raw != 1 or type(key) is not str:
            raise ForeignRowError("foreign key")
        return key

    def store(self, value: Any, read: bool, key: Any = None) -> tuple[int, int, None, str]:
        """The value as it is kept."""
        if read or type(value) is not str:
            raise TypeError("a value is a text")
        return 0, MODE_RAW, None, value

    def fetch(self, mode: Any, filename: Any, value: Any, read: bool) -> str:
        """The value of a row."""
        if read or mode != MODE_RAW or filename is not None or type(value) is not str:
            raise ForeignRowError("foreign value")
        return value

    def filename(self, key: Any = None, value: Any = None) -> tuple[str, str]:
        """No value has a file."""
        raise ForeignRowError("a value in a file")

    def remove(self, file_path: Any) -> None:
        """Whatever file a row names, it is not artist's."""


class TextCache(diskcache.Cache):  # type: ignore[misc]  # the library is untyped
    """Texts under texts.

    Raises:
        DamagedDatabaseError: the database has other tables, triggers or settings than artist's.
        sqlite3.Error: SQLite cannot use the file, or another process has locked it.
    """

    def __init__(self, database: Path) -> None:
        self._database = str(database)
        self._ready = self._prepare()
        # diskcache expands `~` and `$NAME` in its folder. It needs none here.
        try:
            super().__init__(os.curdir, timeout=WAIT_S, disk=TextDisk, **SETTINGS)
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        """Number of rows, counted; diskcache would believe a setting."""
        return int(self._sql("SELECT COUNT(*) FROM Cache").fetchone()[0])

    def volume(self) -> int:
        """Size of the database in bytes."""
        return int(self._page_size * self._sql("PRAGMA page_count").fetchone()[0])

    def reset(self, key: Any, value: Any = ENOVAL, update: bool = True) -> Any:
        """Take a setting from the code; the file has no say."""
        if key not in SETTINGS and key not in METADATA:
            raise DamagedDatabaseError(f"unknown setting {key!r}")
        value = SETTINGS.get(key, 0) if value is ENOVAL else value
        setattr(self, key, value)
        return value

    def rows(self) -> Iterator[Row]:
        """All rows, foreign ones too."""
        select = (
            "SELECT rowid, key, raw, expire_time, mode, filename, value FROM Cache"
            " WHERE rowid > ? ORDER BY rowid LIMIT ?"
        )
        after = -(2**63)
        while page := self._sql(select, (after, _PAGE)).fetchall():
            for rowid, key, raw, expiry, mode, filename, value in page:
                whole = type(key) is str and raw == 1 and expiry is None
                inline = mode == MODE_RAW and filename is None and type(value) is str
                yield Row(rowid, key, value if whole and inline else None)
            if page[-1][0] <= after:
                raise DamagedDatabaseError("rows out of order")
            after = page[-1][0]

    def drop(self, row: Row) -> None:
        """Delete a row by its number: its key may be anything."""
        with self._transact() as (sql, _):
            sql("DELETE FROM Cache WHERE rowid = ?", (row.rowid,))

    def clear(self, retry: bool = False) -> int:
        """Delete all rows at once and return how many there were."""
        with self._transact(retry) as (sql, _):
            count = len(self)
            sql("DELETE FROM Cache")
        with suppress(sqlite3.OperationalError):  # a reader keeps the file as large as it is
            self._sql("VACUUM")
        return count

    def is_whole(self) -> bool:
        """Whether SQLite finds no fault in the whole file."""
        return bool(self._sql("PRAGMA integrity_check(1)").fetchall() == [("ok",)])

    def _prepare(self) -> bool:
        """Make the tables of a new database, compare those of another. Then all is ready."""
        con = self._connect()
        try:
            if _layout(con) == ([], []):
                # Whole or not at all: other processes may be starting now.
                con.execute("BEGIN IMMEDIATE")
                if _layout(con) == ([], []):
                    _make(con)
                con.execute("COMMIT")
            if _layout(con) != _model():
                raise DamagedDatabaseError("tables or settings that artist did not make")
        finally:
            con.close()
        return True

    def _connect(self) -> sqlite3.Connection:
        con = sqlite3.connect(self._database, timeout=WAIT_S, isolation_level=None)
        try:
            self._bound(con)
        except BaseException:
            con.close()
            raise
        return con

    def _bound(self, con: sqlite3.Connection) -> None:
        """Limit what a statement may take, and set the pragmas."""
        con.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _ROW_BYTES)
        _allow_steps(con)
        for pragma in _PRAGMAS:
            con.execute(f"PRAGMA {pragma}")

    @property
    def _con(self) -> sqlite3.Connection:
        """The connection of this thread in this process, as in diskcache, with our pragmas."""
        if getattr(self._local, "pid", None) != os.getpid():
            self.close()
            self._local.pid = os.getpid()
        con: sqlite3.Connection | None = getattr(self._local, "con", None)
        if con is None:
            con = self._local.con = self._connect()
        return con

    @property
    def _sql(self) -> Callable[..., sqlite3.Cursor]:
        """Executes a statement; each has its own `MAX_STEPS`."""
        con = self._con

        def execute(*statement: Any) -> sqlite3.Cursor:
            _allow_steps(con)
            return con.execute(*statement)

        return execute

    @property
    def _sql_retry(self) -> Callable[..., sqlite3.Cursor | None]:
        """What diskcache opens a cache with. In a ready one nothing is written, nor locked."""
        sql = self._sql

        def reading(*statement: Any) -> sqlite3.Cursor | None:
            return sql(*statement) if statement[0].startswith(("SELECT", "PRAGMA")) else None

        return reading if self._ready else sql


def _allow_steps(con: sqlite3.Connection) -> None:
    """Let the next statement take `MAX_STEPS`.

    SQLite asks an iterator written in C, and no function of ours: Ctrl-C in such a function would
    be lost, and look like a statement that does not end.
    """
    go_on = repeat(0, MAX_STEPS // _STEPS_AT_ONCE)
    con.set_progress_handler(chain(go_on, repeat(1)).__next__, _STEPS_AT_ONCE)


class _InMemory(TextCache):
    """A new cache that lasts as long as its connection, so that diskcache must not close it."""

    def _prepare(self) -> bool:
        return False

    def close(self) -> None:
        pass


@cache
def _model() -> Layout:
    """The layout that diskcache itself makes, whichever version it is."""
    new = _InMemory(Path(":memory:"))
    con = new._con
    try:
        return _layout(con)
    finally:
        con.close()


def _layout(con: sqlite3.Connection) -> Layout:
    """Tables, indexes and triggers, then settings without counters.

    Both are read up to a limit, as a crafted view may have any number of rows.
    """
    schema = con.execute("SELECT type, name, tbl_name, sql FROM sqlite_master LIMIT 100").fetchall()
    if not schema:
        return [], []
    settings = con.execute("SELECT key, value FROM Settings LIMIT 100").fetchall()
    kept = [row for row in settings if row[0] not in METADATA]
    return sorted(schema, key=repr), sorted(kept, key=repr)


def _make(con: sqlite3.Connection) -> None:
    """Make the tables, and then what depends on them."""
    schema, settings = _model()
    for kind in ("table", "index", "trigger"):
        for _, _, _, statement in (row for row in schema if row[0] == kind and row[3]):
            con.execute(statement)
    rows = [*settings, *METADATA.items()]
    con.executemany("INSERT INTO Settings VALUES (?, ?)", rows)
