"""Do the laws hold under every policy while machines, racks, links and GPUs fail?

Every run is checked after every event: free + held + withdrawn = all GPUs of every leaf.
"""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from random import Random

import pytest
from failures.made import exponential, run_with_failures
from support import SELF_SUFFICIENT, make_policy

from artist.cluster.tree import ClusterTree, nested
from artist.engine.rows import FAILED, FINISHED, Rows
from artist.policies.table import POLICIES as TABLE
from artist.results.failures.tables import job_costs
from artist.results.gpu_time import gpu_time, lost_ticks
from artist.units import TICKS_PER_S, ticks
from artist.workload.job import Job

KNOW_NO_OUTAGES = [name for name in SELF_SUFFICIENT if name.endswith("-original")]
"""The original simulator's schedulers, which say so (tests/engine/test_outages.py)."""

WRAPPED = [f"{entry.id}(fifo)" for entry in TABLE if entry.wraps]

POLICIES = [*(name for name in SELF_SUFFICIENT if name not in KNOW_NO_OUTAGES), *WRAPPED]

SCENARIOS = 200


def scenario(seed: int) -> tuple[ClusterTree, list[Job], dict, float | None]:
    """A random cluster with jobs, some elastic; what fails; and the interval of checkpoints."""
    draw = Random(seed)
    sizes = range(draw.randint(1, 3))
    racks = [[draw.choice([1, 2, 4]) for _ in range(draw.randint(1, 3))] for _ in sizes]
    tree = nested(("machine", "rack", "network"), racks)
    jobs = []
    for index, arrival_s in enumerate(sorted(draw.choices([0.0, 30.0, 500.0], k=8))):
        gpus = draw.randint(1, tree.gpus)
        jobs.append(
            Job(
                id=str(index),
                arrival_s=arrival_s,
                gpus=gpus,
                gpus_min=draw.randint(1, gpus),
                model="any",
                iterations=draw.randint(1, 100),
                compute_s=draw.choice([0.1, 1 / 3, 2.5]),
                restart_s=draw.choice([0.0, 7.5]),
            )
        )
    model: dict = {
        kind: exponential(draw.choice([500.0, 2000.0]), draw.choice([0.0, 60.0]))
        for kind in ("machine", "rack", "gpu")
        if draw.random() < 0.6
    }
    model["link"] = {
        "distribution": "weibull",
        "shape": 0.8,
        "mtbf_s": 1000.0,
        "repair_s": 20.0,
        "level": draw.choice(["machine", "rack"]),
    }
    model["maintenance"] = [
        {"kind": "machine", "unit": 0, "at_s": 20.0, "duration_s": 30.0},
        {"kind": "rack", "unit": 0, "at_s": 60.0, "duration_s": 30.0, "notice_s": 30.0},
        {"kind": "machine", "unit": 0, "at_s": 80.0, "duration_s": 30.0, "notice_s": 50.0},
    ]
    return tree, jobs, model, draw.choice([None, 5.0, 30.0])


def assert_nobody_runs_on_a_withdrawn_gpu(rows: Rows, tree: ClusterTree) -> None:
    """Per leaf: what jobs hold and what is out of service never exceeds what exists."""
    changes: list[tuple[int, int, int, int]] = []
    for row in rows.placements:
        for leaf, count in zip(row.placement.leaves, row.placement.counts, strict=True):
            if row.end > row.start:
                changes += [(row.start, 1, leaf, count), (row.end, 0, leaf, -count)]
    # Between the same two ticks: what leaves service goes after jobs that left.
    for one in rows.outages:
        for leaf, count in zip(one.placement.leaves, one.placement.counts, strict=True):
            changes.append((one.tick, 0 if one.back else 1, leaf, -count if one.back else count))
    # At one tick several changes may follow each other; the state after them counts.
    gpus = tree.levels[0].gpus
    taken = [0] * len(gpus)
    for _, of_a_tick in groupby(sorted(changes), key=itemgetter(0)):
        for _, _, leaf, count in of_a_tick:
            taken[leaf] += count
        assert all(0 <= used <= there for used, there in zip(taken, gpus, strict=True))


def assert_lawful(policy: str, seed: int) -> int:
    """Run a scenario; the number of times that a failure stopped a job."""
    tree, jobs, model, interval_s = scenario(seed)
    rows, failures = run_with_failures(
        tree, jobs, model, policy=make_policy(policy), interval_s=interval_s, cost_s=0.5, seed=seed
    )
    assert_nobody_runs_on_a_withdrawn_gpu(rows, tree)
    assert sorted(row.handle for row in rows.jobs) == list(range(len(jobs)))
    stopped = sum(len(row.stopped) for row in rows.outages if row.outage and row.outage.failed)
    assert stopped == sum(row.failures for row in rows.jobs)
    assert stopped == sum(row.reason is FAILED for row in rows.placements)
    costs = job_costs(rows, failures.hazard)
    assert ((costs.ratio > 0) & (costs.ratio <= 1)).all()
    # Whatever the GPUs that jobs held did, it is one of four things.
    held = sum(row.placement.gpus * (row.end - row.start) for row in rows.placements)
    assert sum(gpu_time(rows)) == pytest.approx(held / TICKS_PER_S)
    for row in rows.jobs:  # the time of kept iterations is the job's work
        assert row.run >= ticks(row.job.ideal_s * row.job.gpus / row.job.gpus_max) - 1
    ended = {row.handle: row.end for row in rows.placements if row.reason is FINISHED}
    assert ended == {row.handle: row.finish for row in rows.jobs}
    assert all(lost >= 0 for lost in lost_ticks(rows))
    return stopped


@pytest.mark.parametrize("policy", POLICIES)
def test_the_laws_hold_under_failures(policy: str) -> None:
    assert sum(assert_lawful(policy, seed) for seed in range(4)) > 0


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
def test_the_laws_hold_under_failures_in_200_scenarios(policy: str) -> None:
    assert sum(assert_lawful(policy, seed) for seed in range(SCENARIOS)) > SCENARIOS
