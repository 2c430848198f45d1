"""Ways to break a cache: each is a function of a random generator and the folder `Broken`.

What a row or a journal names are files of somebody else. None may ever be touched.
"""

# ruff: noqa: S608 - the statements are our own

from __future__ import annotations

import os
import pickle
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from artist.estimates.cache_files import DATABASE, FOLDER, OWN_NAMES

JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")


@dataclass(frozen=True)
class Place:
    """A user's folder with a sound cache in it, and files of his own inside and outside."""

    root: Path
    sound: bytes

    @property
    def folder(self) -> Path:
        """The cache's own folder."""
        return self.root / "user" / FOLDER

    @property
    def database(self) -> Path:
        """The cache's database."""
        return self.folder / DATABASE

    @property
    def thesis(self) -> Path:
        """A file that nobody may touch."""
        return self.root / "outside" / "thesis.txt"

    def restore(self) -> None:
        """Everything as it was."""
        for child in self.root.iterdir():
            shutil.rmtree(child)
        self.folder.mkdir(parents=True)
        self.database.write_bytes(self.sound)
        self.thesis.parent.mkdir()
        mine = [self.thesis, self.root / "user" / "results.csv", self.folder / "notes.txt"]
        for path in [*mine, self.root / "user" / DATABASE]:
            path.write_text(f"{path.name} of somebody else\n")
        os.mkfifo(self.root / "outside" / "pipe")

    def foreign(self) -> dict[str, bytes | str]:
        """All files but the cache's own, with what they hold."""
        return {str(p): _content(p) for p in sorted(self.root.rglob("*")) if not self._is_own(p)}

    def _is_own(self, path: Path) -> bool:
        if path == self.folder:
            return path.is_dir() and not path.is_symlink()
        return path.parent == self.folder and path.name in OWN_NAMES and _is_regular(path)


def _is_regular(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _content(path: Path) -> bytes | str:
    if path.is_symlink():
        return f"link to {path.readlink()}"
    return path.read_bytes() if path.is_file() else f"mode {path.lstat().st_mode}"


Breaker = Callable[[random.Random, Place], None]


def flipped_bytes(rng: random.Random, place: Place) -> None:
    data = bytearray(place.sound)
    for _ in range(rng.choice((1, 1, 3, 30, 1000))):
        data[rng.randrange(len(data))] = rng.randrange(256)
    place.database.write_bytes(data)


def header(rng: random.Random, place: Place) -> None:
    data = bytearray(place.sound)
    for _ in range(rng.choice((1, 1, 2, 5))):
        data[rng.randrange(100)] = rng.choice((0, 1, 2, 3, 127, 255))
    place.database.write_bytes(data)


def schema_bytes(rng: random.Random, place: Place) -> None:
    """The first page holds the schema."""
    data = bytearray(place.sound)
    for _ in range(rng.choice((1, 1, 2, 5))):
        data[rng.randrange(100, 4096)] = rng.randrange(256)
    place.database.write_bytes(data)


def exchanged_pages(rng: random.Random, place: Place) -> None:
    pages = [place.sound[at : at + 4096] for at in range(0, len(place.sound), 4096)]
    for _ in range(rng.choice((1, 2, 5))):
        new = rng.choice((bytes(4096), rng.randbytes(4096), rng.choice(pages)))
        pages[rng.randrange(len(pages))] = new
    place.database.write_bytes(b"".join(pages))


def tree_pointers(rng: random.Random, place: Place) -> None:
    """Pages that are inner nodes of their own tree."""
    data = bytearray(place.sound)
    page = rng.randrange(1, len(data) // 4096) * 4096
    data[page] = rng.choice((2, 5, 10, 13))
    data[page + 8 : page + 12] = (rng.randrange(len(data) // 4096 + 2)).to_bytes(4, "big")
    place.database.write_bytes(data)


def cut_or_grown(rng: random.Random, place: Place) -> None:
    length = rng.choice((0, 1, 50, 100, 4096, rng.randrange(len(place.sound))))
    tail = rng.choice((b"", b"", rng.randbytes(500), bytes(9000)))
    place.database.write_bytes(place.sound[:length] + tail)


def noise(rng: random.Random, place: Place) -> None:
    place.database.write_bytes(rng.choice((b"", b"SQLite format 3\x00")) + rng.randbytes(5000))


@contextmanager
def _edit(place: Place) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(place.database, isolation_level=None)) as con:
        con.execute("PRAGMA synchronous = OFF")
        yield con


def settings(rng: random.Random, place: Place) -> None:
    known = ["count", "size", "size_limit", "cull_limit", "eviction_policy", "statistics"]
    known += ["sqlite_mmap_size", "sqlite_journal_mode", "disk_min_file_size", "tag_index"]
    new = ["sqlite_nonsense", "disk_evil", "get", "_disk", "clear", "", b"\xff", 7, 1.5]
    values = [None, "", "wal", "0; DROP TABLE Cache", b"\x00\xff", -1, 2**62, 1e300, "x" * 10**5]
    with _edit(place) as con:
        if rng.random() < 0.5:
            pair = (rng.choice(values), rng.choice(known))
            con.execute("UPDATE Settings SET value = ? WHERE key = ?", pair)
        elif rng.random() < 0.7:
            con.execute("INSERT INTO Settings VALUES (?, ?)", (rng.choice(new), rng.choice(values)))
        else:
            con.execute("DELETE FROM Settings WHERE key = ?", (rng.choice(known),))


def schema(rng: random.Random, place: Place) -> None:
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
    with _edit(place) as con, suppress(sqlite3.Error):
        rng.choice(
            (
                lambda: con.execute(
                    "CREATE TRIGGER t AFTER INSERT ON Cache BEGIN"
                    " DELETE FROM Cache; INSERT INTO Cache(key) SELECT 1; END"
                ),
                lambda: con.executescript(
                    f"DROP TABLE Cache; CREATE VIEW Cache AS {endless} SELECT i AS rowid,"
                    " 'k' AS key, 1 AS raw, NULL AS expire_time, 1 AS mode, NULL AS filename,"
                    " 'v' AS value FROM n"
                ),
                lambda: con.executescript(
                    f"DROP TABLE Settings; CREATE VIEW Settings AS {endless} SELECT i AS key,"
                    " i AS value FROM n"
                ),
                lambda: con.execute("DROP TABLE " + rng.choice(("Cache", "Settings"))),
                lambda: con.execute("DROP INDEX Cache_key_raw"),
                lambda: con.execute("ALTER TABLE Cache RENAME COLUMN value TO worth"),
                lambda: con.execute("CREATE TABLE thesis (chapter)"),
                lambda: _edit_schema(rng, con),
            )
        )()


def _edit_schema(rng: random.Random, con: sqlite3.Connection) -> None:
    con.execute("PRAGMA writable_schema = ON")
    column, value = rng.choice(
        (("sql", "CREATE"), ("sql", "x\xff"), ("rootpage", 0), ("rootpage", 10**6), ("type", "v"))
    )
    name = rng.choice(("Cache", "Settings", "Cache_key_raw", "Settings_count_insert"))
    con.execute(f"UPDATE sqlite_master SET {column} = ? WHERE name = ?", (value, name))


def rows(rng: random.Random, place: Place) -> None:
    """Rows that artist never writes: other types, other modes, names of files."""
    names = [str(place.thesis), "../../outside/thesis.txt", str(place.root / "outside" / "pipe")]
    names += ["notes.txt", "../results.csv", "/dev/zero", "", b"\x00"]
    values: dict[str, list[object]] = {
        "filename": [*names, *names],
        "mode": [0, 2, 3, 4, 9, None, "1"],
        "raw": [0, None, 7, "x"],
        "key": [None, 5, b"\x80\x04noise", "\x00", "k" * 10**5],
        "expire_time": [0, "never", 1e300],
        "store_time": ["x", None],
        "size": [-1, "x", 2**62],
        "value": ["", "{", "[" * 10**5, '{"a":' * 9999, "null", "[1]", b"\xff", 7, None],
        "rowid": [0, -(2**63), 2**63 - 1],
    }
    values["value"] += ["1" * 5000, '{"check": NaN}', pickle.dumps(print), "\x00" * 50]
    with _edit(place) as con:
        for _ in range(rng.choice((1, 2, 5))):
            column = rng.choice(list(values))
            which = "" if rng.random() < 0.3 and column not in ("rowid", "key") else " LIMIT 1"
            chosen = f"(SELECT rowid FROM Cache ORDER BY random(){which})"
            with suppress(sqlite3.IntegrityError):
                con.execute(
                    f"UPDATE Cache SET {column} = ? WHERE rowid IN {chosen}",
                    (rng.choice(values[column]),),
                )
        if rng.random() < 0.3:  # text that is no UTF-8
            con.execute("UPDATE Cache SET value = CAST(x'22ff22' AS TEXT)")
        if rng.random() < 0.3:  # a file that is read by a name, as diskcache keeps long values
            con.execute("UPDATE Cache SET mode = 3, value = NULL, filename = ?", (names[2],))


def journals(rng: random.Random, place: Place) -> None:
    """Journals that are noise, or that ask SQLite to delete a file."""
    name = os.fsencode(place.thesis)
    deletes = (1).to_bytes(4, "big") + name + len(name).to_bytes(4, "big")
    deletes += (sum(name) & 0xFFFFFFFF).to_bytes(4, "big") + JOURNAL_MAGIC
    start = JOURNAL_MAGIC + bytes(3) + b"\x01" + rng.randbytes(4) + bytes(2) + b"\x00\x07"
    start += bytes(2) + b"\x02\x00" + bytes(2) + b"\x10\x00"
    page = (1).to_bytes(4, "big") + rng.randbytes(4096) + rng.randbytes(4)
    body = rng.choice((rng.randbytes(600), start.ljust(512, b"\x00") + page, start))
    path = place.folder / rng.choice(OWN_NAMES[:3])
    path.write_bytes(body + rng.choice((b"", deletes)))
    if rng.random() < 0.5:
        header(rng, place)


def no_files(rng: random.Random, place: Place) -> None:
    """A pipe, a link or a folder where the cache's own file should be."""
    path = place.folder / rng.choice(OWN_NAMES)
    path.unlink(missing_ok=True)
    rng.choice(
        (
            lambda: os.mkfifo(path),
            lambda: path.symlink_to(place.thesis),
            lambda: path.symlink_to("/dev/zero"),
            lambda: path.symlink_to(path),
            lambda: (path.mkdir(), (path / "mine.txt").write_text("mine")),
        )
    )()


def no_folder(rng: random.Random, place: Place) -> None:
    shutil.rmtree(place.folder)
    rng.choice(
        (
            lambda: place.folder.symlink_to(place.root / "outside"),
            lambda: place.folder.write_text("mine"),
            lambda: os.mkfifo(place.folder),
            lambda: None,
        )
    )()


def nothing(rng: random.Random, place: Place) -> None:
    """A sound cache."""


BREAKERS: tuple[Breaker, ...] = (
    flipped_bytes,
    header,
    schema_bytes,
    exchanged_pages,
    tree_pointers,
    cut_or_grown,
    noise,
    settings,
    schema,
    rows,
    journals,
    no_files,
    no_folder,
    nothing,
)


@contextmanager
def locked(rng: random.Random, place: Place) -> Iterator[None]:
    """Another user of the database holds a lock, or nobody does."""
    lock = rng.choice(("", "", "", "BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"))
    # SQLite would do here what a journal asks for, and the files of others are watched.
    others = any(child.name in OWN_NAMES[:3] for child in place.folder.glob("cache.db-*"))
    if not lock or others or not _is_regular(place.database):
        yield
        return
    with closing(sqlite3.connect(place.database, timeout=0, isolation_level=None)) as con:
        with suppress(sqlite3.Error):  # the database may be damaged too
            con.execute(lock)
        yield
