"""Does the disk cache keep estimates without ever changing one?"""

from __future__ import annotations

import hashlib
import json
import pickle
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, replace
from multiprocessing import get_context
from pathlib import Path

import pytest

from artist.cluster.fabric import load_fabric
from artist.estimates.cache import SCHEMA, DiskStore, cache_dir, open_store, query_key
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


def _damage(folder: Path, value: object, mode: int = 3) -> None:
    with sqlite3.connect(folder / "cache.db") as database:
        database.execute("UPDATE Cache SET value = ?, mode = ?", (value, mode))


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
    ["", "{", "[]", "null", '{"finish_ns": 1}', "\x00\xff" * 50, b"\x80\x04noise", 7],
    ids=repr,
)
def test_a_damaged_entry_is_dropped_not_trusted(tmp_path: Path, store, value: object) -> None:
    store.put(QUERY, ANSWER)
    _damage(tmp_path / "cache", value)
    assert store.get(QUERY, "analytical") is None
    store.put(QUERY, ANSWER)
    assert store.get(QUERY, "analytical") is not None


def test_a_changed_number_is_noticed(tmp_path: Path, store: DiskStore) -> None:
    store.put(QUERY, ANSWER)
    with sqlite3.connect(tmp_path / "cache" / "cache.db") as database:
        database.execute("UPDATE Cache SET value = replace(value, '200', '100')")
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


@pytest.mark.parametrize("content", [b"", b"noise" * 1000, b"SQLite format 3\x00" + b"\x00" * 99])
def test_a_damaged_database_is_replaced_by_a_new_one(
    tmp_path: Path, monkeypatch, content: bytes
) -> None:
    folder = tmp_path / "cache"
    folder.mkdir()
    (folder / "cache.db").write_bytes(content)
    monkeypatch.setenv("ARTIST_CACHE_DIR", str(folder))
    with open_store() as store:
        assert store is not None
        store.put(QUERY, ANSWER)
        assert store.get(QUERY, "analytical") is not None


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
    text = json.dumps([SCHEMA, "a", asdict(QUERY)], sort_keys=True, separators=(",", ":"))
    assert query_key(QUERY, "a") == hashlib.sha256(text.encode()).hexdigest()


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
