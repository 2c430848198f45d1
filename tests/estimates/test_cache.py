"""Does the disk cache keep estimates without ever changing one?"""

from __future__ import annotations

import hashlib
import json
import pickle
import sqlite3
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import asdict, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import diskcache
import pytest
from diskcache.core import MODE_PICKLE

from artist.cluster.fabric import load_fabric
from artist.errors import ConfigError
from artist.estimates.cache import FOLDER, SCHEMA, DiskStore, cache_dir, open_store, query_key
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


def _damage(folder: Path, value: object, mode: int = 1) -> None:
    database = folder / FOLDER / "cache.db"
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("UPDATE Cache SET value = ?, mode = ?", (value, mode))


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
    ["text", b"\x80\x04noise", zlib.compress(b"noise"), zlib.compress(b"7"), zlib.compress(b"{}")],
)
def test_an_entry_that_is_not_an_estimate_is_dropped(tmp_path: Path, store, value: object) -> None:
    store.put(QUERY, ANSWER)
    _damage(tmp_path / "cache", value)
    assert store.get(QUERY, "analytical") is None
    store.put(QUERY, ANSWER)
    assert store.get(QUERY, "analytical") is not None


class Boom:
    def __reduce__(self) -> tuple[object, ...]:
        return (pytest.fail, ("a pickle was loaded",))


def test_a_pickle_in_the_database_is_never_loaded(tmp_path: Path, store: DiskStore) -> None:
    store.put(QUERY, ANSWER)
    _damage(tmp_path / "cache", pickle.dumps(Boom()), mode=MODE_PICKLE)
    assert store.get(QUERY, "analytical") is None


def test_verify_counts_and_drops_what_is_damaged(tmp_path: Path, store: DiskStore) -> None:
    store.put(QUERY, ANSWER)
    store.put(replace(QUERY, passes=2), ANSWER)
    assert store.verify() == (2, 0)
    _damage(tmp_path / "cache", "noise")
    assert store.verify() == (0, 2)
    assert store.info()["entries"] == 0


@pytest.mark.slow
def test_a_lock_costs_the_cache_but_no_run_and_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("diskcache.Cache", partial(diskcache.Cache, timeout=0.1))
    store = DiskStore(tmp_path)
    store.put(QUERY, ANSWER)
    with closing(sqlite3.connect(tmp_path / FOLDER / "cache.db")) as other:
        other.execute("BEGIN IMMEDIATE")
        store.put(replace(QUERY, passes=2), ANSWER)
        with pytest.raises(ConfigError, match="the cache cannot be used now"):
            store.clear()
    again = DiskStore(tmp_path)
    assert again.get(QUERY, "analytical") is not None
    assert again.set_aside is None
    again.close()


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
        assert (sound > 0, damaged, store.set_aside) == (True, 0, None)
        store.close()


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


@pytest.mark.parametrize("content", [b"noise" * 1000, b"SQLite format 3\x00" + b"\x00" * 99])
def test_a_damaged_database_is_set_aside_and_the_users_files_stay(
    tmp_path: Path, monkeypatch, content: bytes
) -> None:
    folder = tmp_path / "cache"
    (folder / FOLDER).mkdir(parents=True)
    (folder / FOLDER / "cache.db").write_bytes(content)
    mine = [folder / "thesis.txt", folder / "cache.db"]
    for path in mine:
        path.write_text("years")
    monkeypatch.setenv("ARTIST_CACHE_DIR", str(folder))
    with open_store() as store:
        assert store is not None
        assert store.set_aside is not None
        assert (store.set_aside / "cache.db").read_bytes() == content
        store.put(QUERY, ANSWER)
        assert store.get(QUERY, "analytical") is not None
    assert [path.read_text() for path in mine] == ["years"] * 2


def test_a_database_of_another_program_is_set_aside(tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir()
    with closing(sqlite3.connect(tmp_path / FOLDER / "cache.db")) as other:
        other.execute("CREATE TABLE Cache (song TEXT)")
    store = DiskStore(tmp_path)
    assert store.set_aside is not None
    store.close()


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


@pytest.mark.slow
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
