"""Do jobs share a GPU only if its memory holds all of them, and does `why` say so?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from engine.gpu_sharing import (
    ONE,
    OTHER,
    READERS,
    assert_lawful,
    assert_reads_back,
    assert_refused,
    machines,
    part,
    ran,
    scenario_of,
    told,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import trees
from support import S, Script, finishes, job, on, speeds
from support import run as run_script

from artist.api import simulate
from artist.cluster.tree import ClusterTree, HostSizes
from artist.config import Scenario
from artist.contract import Start
from artist.engine.rows import Rows
from artist.engine.simulator import Simulator
from artist.errors import ArtistError, InvariantError, PolicyError
from artist.units import GPU_MILLI
from artist.workload.job import Job


def needs(name: str, milli: int, gib: float, **fields: Any) -> Job:
    return part(name, milli, gpu_memory_mib=round(1024 * gib), **fields)


@pytest.mark.parametrize("policy", READERS)
def test_two_shares_whose_memory_does_not_fit_together_take_turns(policy: str) -> None:
    """10 + 8 GiB on a GPU of 16, then 10 + 6: each holds half of the GPU."""
    jobs = [needs("a", 500, 10), needs("b", 500, 8)]
    rows = ran(machines(16), jobs, policy)
    assert finishes(rows) == {"a": 10.0, "b": 20.0}
    words = "1 GPU with room had 6 free GiB of GPU memory of the 8 that it needs"
    assert told(rows) == [(0.0, 1, "gpu_memory", words)]
    rows = ran(machines(16), [jobs[0], needs("b", 500, 6)], policy)
    assert finishes(rows) == {"a": 10.0, "b": 10.0}
    assert told(rows) == []


@pytest.mark.parametrize("policy", READERS)
def test_a_share_goes_to_the_fullest_gpu_whose_memory_has_room(policy: str) -> None:
    """c would fit beside a, the fuller one, but for its memory: it goes beside b."""
    jobs = [
        needs("a", 600, 12),
        needs("b", 500, 2, arrival_s=1.0),
        needs("c", 200, 8, arrival_s=2.0),
        part("d", 200, arrival_s=3.0),  # states nothing
    ]
    rows = ran(machines(16, 16), jobs, policy)
    assert {row.handle: row.placement for row in rows.placements} == {
        0: ONE, 1: OTHER, 2: OTHER, 3: OTHER,
    }  # fmt: skip


@pytest.mark.parametrize("policy", READERS)
def test_a_job_on_whole_gpus_waits_for_those_with_the_memory(policy: str) -> None:
    """Two GPUs of 40 GiB and two of 16; b needs 20 GiB on each of its two, c does not say."""
    jobs = [
        job("a", 1, 10, gpu_memory_mib=20 * 1024),
        job("b", 2, 10, gpu_memory_mib=20 * 1024, arrival_s=1.0),
        job("c", 2, 10, arrival_s=2.0),
    ]
    rows = ran(machines(16, 40, count=2), jobs, policy)
    of = {row.handle: row.placement for row in rows.placements}
    assert of[1] == on({1: 2})
    if policy != "fifo":  # there b blocks c
        assert of[2] == on({0: 2})
    assert [row[:3] for row in told(rows)] == [(1.0, 1, "gpu_memory")]
    assert (
        "2 GPUs with room had 16 free GiB of GPU memory of the 20 that it needs on each"
        in (told(rows)[0][3])
    )


def test_memory_that_a_gpu_or_a_job_does_not_state_does_not_matter() -> None:
    jobs = [needs("a", 500, 100), needs("b", 500, 100)]
    assert finishes(ran(machines(None, count=1), jobs)) == {"a": 10.0, "b": 10.0}
    jobs = [needs("a", 300, 16), part("b", 300), part("c", 300)]
    assert finishes(ran(machines(16), jobs)) == {"a": 10.0, "b": 10.0, "c": 10.0}


def test_easy_reserves_by_the_memory_that_ends() -> None:
    """b waits for the memory of a until 10 s; c would hold what b needs, d leaves by then."""
    jobs = [
        needs("a", 500, 12, iterations=10),
        needs("b", 500, 10, arrival_s=1.0, iterations=10),
        needs("c", 100, 4, arrival_s=2.0, iterations=10),
        needs("c2", 100, 8, arrival_s=2.0, iterations=10),
        needs("d", 100, 4, arrival_s=2.0, iterations=8),
    ]
    rows = ran(machines(16), jobs, "easy")
    # c beside a and b: 4 + 10 GiB fit, so it does not delay b; then d has no memory until 10 s.
    assert finishes(rows) == {"a": 10.0, "b": 20.0, "c": 12.0, "d": 20.0, "c2": 30.0}


def test_a_share_that_a_gpu_has_no_memory_for_is_refused() -> None:
    both = Script({0: [Start(0, ONE), Start(1, ONE)]})
    with pytest.raises(PolicyError, match="'b': 1 GPUs of machine 0 claimed, but 0 are free"):
        run_script(machines(16), [needs("a", 500, 10), needs("b", 500, 8)], both)
    wide = Script({0: [Start(0, on({0: 1, 1: 1}))]})
    with pytest.raises(PolicyError, match="have 16 free GiB of GPU memory of the 20"):
        run_script(machines(16, 40), [job("a", 2, 9, gpu_memory_mib=20 * 1024)], wide)


@pytest.mark.parametrize("broken", ["a share", "a whole GPU"])
def test_check_notices_gpus_whose_memory_is_held_twice(broken: str) -> None:
    share = broken == "a share"
    jobs = [
        needs("a", 500, 9) if share else job("a", 1, 9, gpu_memory_mib=9 * 1024),
        part("b", 500, arrival_s=1.0),
    ]
    engine = Simulator(machines(10), jobs, speeds(), check=True)
    engine.next_question()
    engine.answer([Start(0, ONE)])
    if share:
        shares: Any = engine._holdings.free.shares
        shares.memory = [1024]
    else:
        engine._holdings.running[0].job = replace(jobs[0], gpu_memory_mib=11 * 1024)
    with pytest.raises(InvariantError, match=r"GiB of GPU memory|MiB of a GPU"):
        engine.next_question()


# -- files -----------------------------------------------------------------------------

CLUSTER = """name: small
summary: two machines
levels: [rack, machine]
tree: {count: 1, machine: [{gpus: 1, gpu_memory_gib: 16}, {gpus: 1, gpu_memory_gib: 40}]}
"""
TRACE = "job_id,arrival_s,gpus,model,iterations,compute_s,gpu_share,gpu_memory_gib\n"
ROWS = "a,0,1,vgg16,100,1,0.5,30.5\nb,0,1,vgg16,100,1,,\nc,10,1,vgg16,100,1,0.25,9.6\n"


def scenario(folder: Path, rows: str = ROWS, cluster: str = CLUSTER, **more: Any) -> Scenario:
    return scenario_of(folder, cluster, TRACE + rows, **more)


def test_columns_let_a_job_wait_for_the_memory_of_a_gpu_and_the_tables_say_so(
    tmp_path: Path,
) -> None:
    result = simulate(scenario(tmp_path), check=True, cache=False)
    waits = result.tables["waits"]
    assert list(waits["job_id"]) == ["c"]
    assert list(waits["wait_s"]) == [90.0]
    assert list(waits["cause"]) == list(result.tables["wait_causes"]["cause"]) == ["gpu_memory"]
    assert "9.5 free GiB of GPU memory of the 9.6" in next(iter(waits["reason"]))


@pytest.mark.parametrize(
    ("rows", "more", "words"),
    [
        ("a,0,1,vgg16,9,1,,-1\n", {}, r"t.csv:2: field 'gpu_memory_gib' is '-1', expected a numb"),
        (
            "a,0,1,vgg16,9,1,,\nb,0,1,vgg16,9,1,0.5,48\n",
            {},
            r"t.csv:3: job 'b' needs 48 GiB of GPU memory on each GPU; of its 1 GPU the "
            r"machines of the empty cluster can feed 0; correct gpu_memory_gib, or the cluster",
        ),
        ("a,0,2,vgg16,9,1,,20\n", {}, r"needs 20 GiB .* its 2 GPUs .* feed 1; correct gpu_me"),
        ("a,0,1,vgg16,9,1,,9\n", {"policy": "themis"}, "themis looks at GPUs only, but job 'a'"),
        # What no cluster file mends comes first.
        ("a,0,1,vgg16,9,1,0.5,9\n", {"policy": "themis"}, "themis hands out whole GPUs only"),
    ],
)
def test_impossible_requests_are_refused_in_one_sentence(
    tmp_path: Path, rows: str, more: dict[str, Any], words: str
) -> None:
    assert_refused(scenario(tmp_path, rows, **more), words)


def test_a_bad_memory_of_gpus_names_its_line(tmp_path: Path) -> None:
    with pytest.raises(ArtistError, match=r"c.yaml:4: a machine: .*'gpu_memory_gib'"):
        simulate(scenario(tmp_path, cluster=CLUSTER.replace("gib: 16", "gib: 0")), cache=False)


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_a_trace_reads_back_as_it_was_written(tmp_path: Path, name: str) -> None:
    jobs = [needs("a", 500, 10.5), part("b", 250), job("c", 2, 9, gpu_memory_mib=1)]
    assert_reads_back(jobs, tmp_path / name)


# -- random runs -----------------------------------------------------------------------


@st.composite
def cases(draw: st.DrawFn) -> tuple[ClusterTree, list[Job]]:
    """Up to twelve jobs, most of which ask for shares; each fits every GPU."""
    tree = draw(trees())
    machines = len(tree.kinds)
    sizes = draw(st.tuples(*[st.sampled_from([None, 16, 24])] * machines))
    none = (None,) * machines
    tree = replace(tree, hosts=HostSizes(none, none, sizes))
    arrivals = draw(st.lists(st.sampled_from([0.0, 0.5, 7.0, 300.0]), min_size=1, max_size=12))
    jobs = []
    for index, arrival_s in enumerate(sorted(arrivals)):
        milli = draw(st.sampled_from([GPU_MILLI, 1, 250, 333, 500, 700]))
        count = draw(st.integers(1, tree.gpus)) if milli == GPU_MILLI else 1
        mib = draw(st.sampled_from([0, 1, 4, 8, 9, 16]))
        iterations = draw(st.integers(1, 100))
        fields = {"gpu_milli": milli, "gpu_memory_mib": mib, "arrival_s": arrival_s}
        jobs.append(job(f"j{index}", count, iterations, **fields))
    return tree, jobs


def assert_memory_holds(tree: ClusterTree, rows: Rows, jobs: Sequence[Job]) -> None:
    """Jobs on a GPU never need more memory than it has."""
    assert tree.hosts is not None
    for row in rows.placements:
        together = sum(jobs[x].gpu_memory_mib for x in (row.handle, *row.beside))
        for leaf in row.placement.leaves:
            most = tree.hosts.gpu_memory_mib[tree.machine_of[leaf]]
            assert most is None or together <= most


@pytest.mark.parametrize("policy", READERS)
@settings(max_examples=25)
@given(case=cases())
def test_no_memory_is_held_twice_and_all_jobs_finish(
    policy: str, case: tuple[ClusterTree, list[Job]]
) -> None:
    tree, jobs = case
    rows = ran(tree, jobs, policy)
    assert len(rows.jobs) == len(jobs)
    assert_lawful(rows, jobs)
    assert_memory_holds(tree, rows, jobs)


@settings(max_examples=60)
@given(case=cases())
def test_a_job_waits_only_while_no_gpu_has_room_for_it(case: tuple[ClusterTree, list[Job]]) -> None:
    """Recounted from the rows: what `fifo-backfill` leaves unused suits no waiting job."""
    tree, jobs = case
    rows = ran(tree, jobs)
    assert tree.hosts is not None
    for tick in {row.start for row in rows.placements} | {row.end for row in rows.placements}:
        held = [row for row in rows.placements if row.start <= tick < row.end]
        free = dict(enumerate(tree.leaf_gpus.tolist()))
        for row in held:
            if row.first:
                for leaf, count in zip(*row.placement, strict=True):
                    free[leaf] -= count
        running = {row.handle for row in held}
        finished = {row.handle for row in rows.jobs if row.finish <= tick}
        for handle in range(len(jobs)):
            asks = jobs[handle]
            arrived = round(asks.arrival_s * S) <= tick
            if handle in running | finished or not arrived or asks.gpu_milli == GPU_MILLI:
                continue
            assert not any(free.values())
            for row in held:
                there = [jobs[x] for x in (row.handle, *row.beside)]
                most = tree.hosts.gpu_memory_mib[tree.machine_of[row.placement.leaves[0]]]
                room = GPU_MILLI - sum(x.gpu_milli for x in there) >= asks.gpu_milli
                memory = sum(x.gpu_memory_mib for x in (*there, asks))
                full = most is not None and asks.gpu_memory_mib > 0 and memory > most
                assert not room or full
