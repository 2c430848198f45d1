"""Does the disk cache keep estimates without ever changing one?"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import sqlite3
import stat
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import asdict, replace
from multiprocessing import get_context
from pathlib import Path

import pytest

from artist.cluster.fabric import load_fabric
from artist.errors import ConfigError
from artist.estimates import text_cache
from artist.estimates.cache import SCHEMA, DiskStore, cache_dir, open_store, query_key
from artist.estimates.cache_files import DATABASE, FOLDER, OWN_NAMES
from artist.estimates.latency_service import LatencyService
from artist.estimates.query import (
    Burst,
    Dimension,
    Estimate,
    LatencyQuery,
    SystemSettings,
    Topology,
)
from artist.run import open_backend
from artist.workload.layers import Degrees, Parallelism
from artist.workload.models import workload

RING = ("ring",)
QUERY = LatencyQuery(
    workload("alexnet"),
    (Dimension(Topology.RING, 4, 50.0, 500.0),),
    SystemSettings(RING, RING, RING, RING),
)
ANSWER = Estimate(200, 100, "analytical", (7,), (Burst(0, 1, 2, 3),))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[DiskStore]:
    opened = DiskStore(tmp_path / "cache")
    yield opened
    opened.close()


def _change(folder: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(folder / FOLDER / DATABASE, isolation_level=None)) as database:
        database.execute(statement, values)


def _damage(folder: Path, value: object, mode: int = 1) -> None:
    _change(folder, "UPDATE Cache SET value = ?, mode = ?", value, mode)


def test_an_estimate_comes_back_whole_and_says_that_it_was_kept(store: DiskStore) -> None:
    store.put(QUERY, ANSWER)
    assert store.get(QUERY, "analytical") == replace(ANSWER, from_cache=True)


@pytest.mark.parametrize(
    "other",
    [
        replace(QUERY, passes=2),
        replace(QUERY, workload=workload("vgg11")),
        replace(QUERY, dimensions=(Dimension(Topology.RING, 4, 50.0, 501.0),)),
        replace(QUERY, system=replace(QUERY.system, scheduling_policy="FIFO")),
    ],
)
def test_any_other_query_has_another_key(store: DiskStore, other: LatencyQuery) -> None:
    store.put(QUERY, ANSWER)
    assert store.get(other, "analytical") is None


def test_another_source_never_answers(store: DiskStore) -> None:
    store.put(QUERY, ANSWER)
    assert store.get(QUERY, "astra-docker@sha256:0") is None


@pytest.mark.parametrize(
    "value",
    ["", "{", "[]", "null", '{"finish_ns": 1}', "\x00\xff" * 50, b"\x80\x04noise", 7, "[" * 10**5],
    ids=lambda value: repr(value)[:20],
)
def test_a_damaged_entry_is_dropped_not_trusted(tmp_path: Path, store, value: object) -> None:
    store.put(QUERY, ANSWER)
    _damage(tmp_path / "cache", value)
    assert store.get(QUERY, "analytical") is None
    store.put(QUERY, ANSWER)
    assert store.get(QUERY, "analytical") is not None


def test_a_changed_number_is_noticed(tmp_path: Path, store: DiskStore) -> None:
    store.put(QUERY, ANSWER)
    _change(tmp_path / "cache", "UPDATE Cache SET value = replace(value, '200', '100')")
    assert store.get(QUERY, "analytical") is None


class Boom:
    def __reduce__(self) -> tuple[object, ...]:
        return (pytest.fail, ("a pickle was loaded",))


def test_a_pickle_in_the_database_is_never_loaded(tmp_path: Path, store: DiskStore) -> None:
    store.put(QUERY, ANSWER)
    _damage(tmp_path / "cache", pickle.dumps(Boom()), mode=4)
    assert store.get(QUERY, "analytical") is None


def test_verify_counts_and_drops_what_is_damaged(tmp_path: Path, store: DiskStore) -> None:
    store.put(QUERY, ANSWER)
    store.put(replace(QUERY, passes=2), ANSWER)
    assert store.verify() == (2, 0)
    _damage(tmp_path / "cache", "noise")
    assert store.verify() == (0, 2)
    assert store.info()["entries"] == 0


def test_verify_drops_foreign_keys(tmp_path: Path, store: DiskStore) -> None:
    store.put(QUERY, ANSWER)
    store.put(replace(QUERY, passes=2), ANSWER)
    _change(tmp_path / "cache", "UPDATE Cache SET raw = 0, key = x'00' WHERE rowid = 1")
    assert store.verify() == (1, 1)
    assert store.verify() == (1, 0)


@pytest.mark.parametrize("verb", ["get", "put", "verify", "clear"])
@pytest.mark.parametrize("name", ["thesis.txt", "pipe"])
def test_a_row_that_names_a_file_neither_reads_nor_deletes_it(
    tmp_path: Path, store: DiskStore, verb: str, name: str
) -> None:
    (tmp_path / "thesis.txt").write_text("years")
    os.mkfifo(tmp_path / "pipe")
    store.put(QUERY, ANSWER)
    path = str(tmp_path / name)
    _change(tmp_path / "cache", "UPDATE Cache SET mode = 3, value = NULL, filename = ?", path)
    match verb:
        case "get":
            assert store.get(QUERY, "analytical") is None
        case "put":
            store.put(QUERY, ANSWER)
            assert store.get(QUERY, "analytical") is not None
        case "verify":
            assert store.verify() == (0, 1)
        case "clear":
            assert store.clear() == 1
    assert (tmp_path / "thesis.txt").read_text() == "years"
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_a_journal_that_names_a_file_does_not_delete_it(tmp_path: Path, store: DiskStore) -> None:
    """SQLite deletes the super-journal that a journal names, if no other journal needs it."""
    thesis = tmp_path / "thesis.txt"
    thesis.write_text("years")
    magic, name = bytes.fromhex("d9d505f920a163d7"), os.fsencode(thesis)
    header = struct.pack(">8s5I", magic, 0, 0, 8, 512, 4096).ljust(512, b"\x00")
    tail = struct.pack(">I", 1) + name + struct.pack(">II", len(name), sum(name)) + magic
    store.put(QUERY, ANSWER)
    store.close()
    folder = tmp_path / "cache" / FOLDER
    (folder / f"{DATABASE}-journal").write_bytes(header + tail)
    again = DiskStore(tmp_path / "cache")
    assert again.get(QUERY, "analytical") is None
    again.close()
    assert thesis.read_text() == "years"


@pytest.mark.parametrize("name", OWN_NAMES)
def test_what_is_no_file_of_the_cache_is_refused_and_kept(tmp_path: Path, name: str) -> None:
    (tmp_path / "thesis.txt").write_text("years")
    (tmp_path / FOLDER).mkdir()
    link = tmp_path / FOLDER / name
    link.symlink_to(tmp_path / "thesis.txt")
    with pytest.raises(ConfigError, match=f"{name}: is not a regular file"):
        DiskStore(tmp_path)
    assert link.is_symlink()
    assert (tmp_path / "thesis.txt").read_text() == "years"


def test_a_lock_costs_a_wait_and_the_cache_but_no_run(
    tmp_path: Path, store: DiskStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_cache, "WAIT_S", 0.1)
    store.put(QUERY, ANSWER)
    with closing(sqlite3.connect(tmp_path / "cache" / FOLDER / DATABASE)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(ConfigError, match="another process has locked it"):
            DiskStore(tmp_path / "cache")
        assert store.get(QUERY, "analytical") is None
        store.put(QUERY, ANSWER)
        with pytest.raises(ConfigError, match="another process has locked it"):
            store.info()
    again = DiskStore(tmp_path / "cache")
    assert again.get(QUERY, "analytical") is not None
    assert not again.replaced
    again.close()


def test_a_lock_on_writing_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """diskcache raises an error of its own, which has no code."""
    monkeypatch.setattr(text_cache, "WAIT_S", 0.1)
    store = DiskStore(tmp_path)
    store.put(QUERY, ANSWER)
    with closing(sqlite3.connect(tmp_path / FOLDER / DATABASE)) as other:
        other.execute("BEGIN IMMEDIATE")
        store.put(replace(QUERY, passes=2), ANSWER)
        with pytest.raises(ConfigError, match="another process has locked it"):
            store.clear()
    assert DiskStore(tmp_path).get(QUERY, "analytical") is not None


ENDLESS = """
DROP TABLE Settings;
CREATE VIEW Settings AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
SELECT i AS key, i AS value FROM n WHERE i < 0
"""


def test_a_statement_without_end_is_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_cache, "MAX_STEPS", 1_000_000)
    DiskStore(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / FOLDER / DATABASE)) as other:
        other.executescript(ENDLESS)
    again = DiskStore(tmp_path)
    assert again.replaced
    again.close()


def test_a_full_disk_is_no_damage(
    tmp_path: Path, store: DiskStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put(QUERY, ANSWER)
    cache = store._cache
    assert cache is not None
    pages = cache._sql("PRAGMA page_count").fetchone()[0]
    cache._sql(f"PRAGMA max_page_count = {pages}")
    for passes in range(2, 2000):
        store.put(replace(QUERY, passes=passes), ANSWER)
        if store._cache is None:
            break
    assert store._cache is None
    again = DiskStore(tmp_path / "cache")
    assert again.get(QUERY, "analytical") is not None
    again.close()


IN_USE = """
import sys
from pathlib import Path
sys.path.insert(0, str(Path("tests/estimates").resolve()))
from test_cache import ANSWER, QUERY, DATABASE, FOLDER, DiskStore, replace
folder = Path(sys.argv[1])
store = DiskStore(folder)
for passes in range(1, 200):
    store.put(replace(QUERY, passes=passes), ANSWER)
for path in (folder / FOLDER).iterdir():
    with path.open("r+b") as file:
        file.truncate(int(sys.argv[2]))
for passes in range(1, 200):
    kept = store.get(replace(QUERY, passes=passes), "analytical")
    assert kept is None or kept == replace(ANSWER, from_cache=True)
    store.put(replace(QUERY, passes=passes), ANSWER)
assert store.get(QUERY, "analytical") is not None
store.verify(), store.info(), store.clear()
"""


WRITER = """
import sys
from pathlib import Path
sys.path.insert(0, str(Path("tests/estimates").resolve()))
from test_cache import ANSWER, QUERY, DiskStore, replace
store = DiskStore(Path(sys.argv[1]))
print("ready", flush=True)
for passes in range(1, 10**6):
    store.put(replace(QUERY, passes=passes), ANSWER)
"""


@pytest.mark.slow
def test_writers_that_are_killed_leave_a_sound_cache(tmp_path: Path) -> None:
    for kill in range(20):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path)],
            cwd=Path(__file__).parents[2],
            stdout=subprocess.PIPE,
        ) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline()
            time.sleep(0.2 + kill / 100)
            writer.kill()
        store = DiskStore(tmp_path)
        sound, damaged = store.verify()
        assert (sound > 0, damaged, store.replaced) == (True, 0, False)
        store.close()


@pytest.mark.parametrize("size", [0, 100, 5000, 30000])
def test_a_database_cut_while_it_is_in_use_kills_nobody(tmp_path: Path, size: int) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", IN_USE, str(tmp_path), str(size)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("verb", ["info", "verify", "clear"])
def test_a_database_that_was_damaged_in_use_is_replaced_by_every_command(
    tmp_path: Path, store: DiskStore, verb: str
) -> None:
    store.put(QUERY, ANSWER)
    (tmp_path / "cache" / FOLDER / DATABASE).write_bytes(b"noise" * 5000)
    getattr(store, verb)()
    assert store.replaced
    store.put(QUERY, ANSWER)
    assert store.get(QUERY, "analytical") is not None


def test_an_emptied_cache_is_small(store: DiskStore) -> None:
    new = store.info()["size_bytes"]
    for passes in range(1, 200):
        store.put(replace(QUERY, passes=passes), ANSWER)
    assert store.info()["size_bytes"] > 3 * new
    assert store.clear() == 199
    assert store.info()["size_bytes"] == new


def test_no_home_is_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("ARTIST_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    with open_store() as store:
        assert store is None
    with pytest.raises(ConfigError, match="set ARTIST_CACHE_DIR"):
        cache_dir()


def test_opening_a_sound_cache_neither_writes_nor_waits_for_a_writer(
    tmp_path: Path, store: DiskStore
) -> None:
    store.put(QUERY, ANSWER)
    database = tmp_path / "cache" / FOLDER / DATABASE
    before = database.read_bytes()
    with closing(sqlite3.connect(database)) as other:
        other.execute("BEGIN IMMEDIATE")
        again = DiskStore(tmp_path / "cache")
        assert again.get(QUERY, "analytical") is not None
        again.close()
    assert database.read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"noise" * 1000, b"SQLite format 3\x00" + b"\x00" * 99])
def test_a_damaged_database_is_replaced_and_the_users_files_stay(
    tmp_path: Path, monkeypatch, content: bytes
) -> None:
    folder = tmp_path / "cache"
    (folder / FOLDER).mkdir(parents=True)
    (folder / FOLDER / DATABASE).write_bytes(content)
    mine = [folder / "thesis.txt", folder / DATABASE, folder / FOLDER / "notes.txt"]
    for path in mine:
        path.write_text("years")
    monkeypatch.setenv("ARTIST_CACHE_DIR", str(folder))
    with open_store() as store:
        assert store is not None
        store.put(QUERY, ANSWER)
        assert store.get(QUERY, "analytical") is not None
    assert [path.read_text() for path in mine] == ["years"] * 3


def test_a_folder_that_cannot_be_used_means_no_cache(monkeypatch) -> None:
    monkeypatch.setenv("ARTIST_CACHE_DIR", "/proc/artist")
    with open_store() as store:
        assert store is None


def test_where_the_folder_is(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.delenv("ARTIST_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_dir() == tmp_path / "artist"


def _write_and_read(folder: str) -> int:
    store = DiskStore(Path(folder))
    right = 0
    for passes in range(1, 40):
        query = replace(QUERY, passes=passes)
        store.put(query, replace(ANSWER, finish_ns=passes))
        kept = store.get(query, "analytical")
        right += kept is not None and kept.finish_ns == passes
    store.close()
    return right


def test_eight_processes_may_write_at_once(tmp_path: Path) -> None:
    with ProcessPoolExecutor(8, mp_context=get_context("spawn")) as pool:
        assert list(pool.map(_write_and_read, [str(tmp_path / "c")] * 8)) == [39] * 8


def test_the_key_depends_on_the_source() -> None:
    assert query_key(QUERY, "a") != query_key(QUERY, "b")


def test_a_key_is_the_digest_of_the_whole_query_so_kept_estimates_stay_known() -> None:
    def digest(part: object) -> str:
        text = json.dumps(part, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    parts = asdict(QUERY)
    parts["workload"] = digest(parts["workload"])
    assert query_key(QUERY, "a") == digest([SCHEMA, "a", parts])


@pytest.mark.parametrize("part", ["name", "parallelism", "layers", "degrees"])
def test_the_key_depends_on_each_part_of_the_workload(part: str) -> None:
    others = {
        "name": "other",
        "parallelism": Parallelism.FSDP,
        "layers": QUERY.workload.layers[:-1],
        "degrees": Degrees(tensor=2),
    }
    other = replace(QUERY.workload, **{part: others[part]})
    assert other != QUERY.workload
    assert query_key(replace(QUERY, workload=other), "a") != query_key(QUERY, "a")


def test_an_estimate_with_its_profile_is_kept_apart(store: DiskStore) -> None:
    bare = replace(ANSWER, profile=None)
    store.put(QUERY, bare)
    assert store.get(QUERY, "analytical", profile=True) is None
    store.put(QUERY, ANSWER, profile=True)
    assert store.get(QUERY, "analytical", profile=True) == replace(ANSWER, from_cache=True)
    assert store.get(QUERY, "analytical") == replace(bare, from_cache=True)


def test_a_profile_comes_only_if_it_is_asked_for(store: DiskStore) -> None:
    fabric, backend = load_fabric("dally2025"), open_backend("analytical")
    service = LatencyService(fabric, backend, workload, store)
    assert service.estimate("alexnet", (4, 4)).profile is None
    profile = service.estimate("alexnet", (4, 4), profile=True).profile
    assert profile
    again = LatencyService(fabric, backend, workload, store)
    assert again.estimate("alexnet", (4, 4), profile=True).profile == profile
    assert again.estimate("alexnet", (4, 4)).profile is None
    assert (store.info()["entries"], again.store_hits) == (2, 2)


def test_an_estimate_for_a_single_gpu_needs_no_store(store: DiskStore) -> None:
    service = LatencyService(load_fabric("dally2025"), open_backend("analytical"), workload, store)
    assert service.estimate("alexnet", 1).source == "single-gpu"
    assert store.info()["entries"] == 0
    service.estimate("alexnet", 2)
    assert (store.info()["entries"], service.distinct, service.store_hits) == (1, 2, 0)
