"""Is fragmentation what its formula says? By hand, and against a count machine by machine."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from engine.test_gpu_shares import cases, ran
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import trees
from support import S, Script, cluster, job, make_policy, on, run

from artist.cluster.placement import machine_counts
from artist.cluster.tree import ClusterTree
from artist.contract import Migrate, Start, Wake
from artist.engine.rows import Rows
from artist.results.fragmentation import fragmented_gpus
from artist.results.metrics import summarise
from artist.results.tables import job_table, timeline_table
from artist.units import seconds
from artist.workload.job import Job


def test_by_hand_on_two_machines() -> None:
    tree = cluster([4, 4])
    jobs = [job("a", 3), job("b", 4, 4), job("d", 5, 2, arrival_s=1), job("c", 1, 6, arrival_s=4)]
    script = Script(
        {
            0: [Start(0, on({0: 3})), Start(1, on({1: 4}))],
            4: [Start(3, on({0: 1}))],
            10: [Start(2, on({0: 4, 1: 1}))],
        }
    )
    rows = run(tree, jobs, script)
    timeline = timeline_table(rows, tree)
    assert timeline["time_s"].tolist() == [0, 1, 4, 10, 12]
    # Until 4 one GPU of machine 0 is free: too few for a (3) and b (4), enough for c (1) and
    # for what d (5) needs beside a whole machine. Until 10 all of machine 1 is free. Then
    # three of its GPUs are: too few for b alone.
    assert timeline["gpus_fragmented"].tolist() == [2 / 4, 2 / 4, 0, 3 / 4, 0]
    # d waits from 1 to 10: with one free GPU for 3 s, with four for 6 s.
    summary = summarise(rows, tree, job_table(rows), timeline, len(jobs))
    assert summary["fragmentation"] == pytest.approx(3 * 0.5 / (3 * 1 + 6 * 4))


def test_a_migration_that_changes_nothing_else_shows() -> None:
    tree = cluster([2, 2])
    jobs = [job("a"), job("b"), job("c", 2, arrival_s=9)]
    script = Script(
        {
            0: [Start(0, on({0: 1})), Start(1, on({1: 1})), Wake(3 * S)],
            3: [Migrate(1, on({0: 1}))],
            9: [Start(2, on({1: 2}))],
        }
    )
    timeline = timeline_table(run(tree, jobs, script), tree)
    assert timeline["time_s"].tolist() == [0, 3, 9, 10, 19]
    assert timeline["gpus_held"].tolist() == [2, 2, 4, 2, 0]
    # One GPU free in each machine, of no use to c; then two in one.
    assert timeline["gpus_fragmented"].tolist() == [2 / 3, 0, 0, 0, 0]


def test_a_run_without_free_gpus_while_jobs_wait_has_none() -> None:
    tree = cluster([2])
    jobs = [job("a", 2), job("b", 1, arrival_s=1)]
    rows = run(tree, jobs, make_policy("fifo"))
    timeline = timeline_table(rows, tree)
    assert summarise(rows, tree, job_table(rows), timeline, 2)["fragmentation"] == 0.0
    assert timeline["gpus_fragmented"].tolist() == [0, 0, 0.5, 0]  # beside b, a would not fit


def counted(rows: Rows, tree: ClusterTree, tick: int) -> float:
    sizes = tree.levels[tree.machine].gpus
    free = list(sizes)
    for row in rows.placements:
        if row.start <= tick < row.end:
            for machine, gpus in machine_counts(tree, row.placement).items():
                free[machine] -= gpus
    total = 0
    for size, left in zip(sizes, free, strict=True):
        for row in rows.jobs:
            demand = row.job.gpus_min
            while demand > size:
                demand -= size
            total += left if demand > left else 0
    return total / len(rows.jobs)


@settings(max_examples=60)
@given(trees(), st.data())
def test_fragmentation_equals_a_count_machine_by_machine(
    tree: ClusterTree, data: st.DataObject
) -> None:
    jobs = [
        job(
            str(index),
            data.draw(st.integers(1, tree.gpus)),
            data.draw(st.integers(1, 9)),
            arrival_s=index * 2.0,
        )
        for index in range(data.draw(st.integers(1, 8)))
    ]
    rows = run(tree, jobs, make_policy("las", placement="any", lease_s=3), lease_s=3)
    ticks, fragmented = fragmented_gpus(rows, tree)
    assert fragmented.tolist() == [counted(rows, tree, tick) for tick in ticks.tolist()]
    changes = {row.start for row in rows.placements} | {row.end for row in rows.placements}
    assert set(ticks.tolist()) == changes
    timeline = timeline_table(rows, tree)
    assert all(seconds(tick) in timeline["time_s"] for tick in changes)


def test_what_shares_leave_of_a_gpu_is_lost_to_jobs_that_ask_for_more() -> None:
    """At 0 s .5 is left of one GPU, and the other is free; at 2 s .2 is left of it."""
    jobs = [
        job("a", 1, 10, gpu_milli=500),
        job("b", 1, 10, gpu_milli=300, arrival_s=2.0),
        job("c", 2, 10, arrival_s=2.0),
    ]
    rows = run(cluster([2]), jobs, make_policy("fifo-backfill"))
    ticks, fragmented = fragmented_gpus(rows, cluster([2]))
    assert [seconds(tick) for tick in ticks.tolist()] == [0, 2, 10, 12, 22]
    # c can use neither what is left nor one free GPU. All ask for more than .2, only c for .5, .7.
    expected = [(0.5 + 1) / 3, (3 * 0.2 + 1) / 3, (0.7 + 1) / 3, 0, 0]
    assert fragmented.tolist() == pytest.approx(expected, abs=1e-12)


def left_over(rows: Rows, tree: ClusterTree, tick: int) -> float:
    """By the paper's rule, GPU by GPU, machine by machine and job by job."""
    gpus: list[list[int]] = [[] for _ in tree.kinds]
    milli = {row.handle: row.gpu_milli for row in rows.placements}
    free = list(tree.levels[tree.machine].gpus)
    for row in rows.placements:
        if row.start <= tick < row.end and row.first:
            for machine, count in machine_counts(tree, row.placement).items():
                free[machine] -= count
                if milli[row.handle] < 1000:
                    gpus[machine].append(1000 - sum(milli[x] for x in (row.handle, *row.beside)))
    total = 0
    for size, whole, parts in zip(tree.levels[tree.machine].gpus, free, gpus, strict=True):
        for one in rows.jobs:
            needed = (one.job.gpus - 1) % size + 1
            if one.job.gpu_milli < 1000:
                total += sum(left for left in parts if left < one.job.gpu_milli)
            else:
                total += sum(parts) + (1000 * whole if needed > whole else 0)
    return total / 1000 / len(rows.jobs)


@settings(max_examples=40)
@given(case=cases())
def test_with_shares_fragmentation_equals_a_count_gpu_by_gpu(
    case: tuple[ClusterTree, list[Job]],
) -> None:
    tree, jobs = case
    rows = ran(tree, jobs)
    ticks, fragmented = fragmented_gpus(rows, tree)
    expected = [left_over(rows, tree, tick) for tick in ticks.tolist()]
    assert fragmented.tolist() == pytest.approx(expected, abs=1e-9)


THREADS = """
import numpy as np
from artist.cluster.tree import regular
from artist.results.metrics import _fragmentation

rng = np.random.default_rng(1)
rows = 200_000
timeline = {
    "time_s": np.cumsum(rng.random(rows)),
    "gpus_held": rng.integers(0, 64, rows),
    "jobs_waiting": rng.integers(0, 3, rows),
    "gpus_fragmented": 64 * rng.random(rows),
}
tree = regular(racks=1, machines_per_rack=8, gpus_per_machine=8)
print(_fragmentation(timeline, tree))
"""


def test_the_last_digit_does_not_depend_on_the_number_of_threads() -> None:
    printed = {
        subprocess.run(
            [sys.executable, "-c", THREADS],
            env={**os.environ, "OPENBLAS_NUM_THREADS": threads},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for threads in ("1", "2")
    }
    assert len(printed) == 1
