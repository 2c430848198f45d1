"""Do the invariants hold under every policy while machines, racks, links and GPUs fail?

Every run is checked after every event: free + held + withdrawn = all GPUs of every leaf.
"""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from random import Random
from typing import Any

import pytest
from failures.made import exponential, run_with_failures
from support import CASES

from artist.cluster.tree import ClusterTree, nested
from artist.contract import Policy
from artist.engine.rows import FAILED, FINISHED, Rows
from artist.policies.learned.policy import SHIPPED
from artist.policies.table import POLICIES as TABLE
from artist.results.failure_tables import job_costs
from artist.results.gpu_time import gpu_time, lost_ticks
from artist.rng import FIRST_DRAWS
from artist.run import open_policy
from artist.units import TICKS_PER_S, ticks
from artist.workload.job import Job
from artist.workload.tenants import Tenant

HOSTS = ("fifo", "srsf", "dally")
"""Policies inside wrappers: one that never preempts, one that preempts at once, one with leases."""

POLICIES = [
    *(x.id for x in TABLE if not x.wraps),
    *(f"{x.id}({HOSTS[0]})" for x in TABLE if x.wraps),
]

MORE = [
    *(f"{x.id}({host})" for x in TABLE if x.wraps for host in HOSTS[1:]),
    "quota(cassini(themis))",
    *(f"federated, cell {cell}" for cell in (1, 3, 6, 9)),
]
"""Only in the slow test."""

ACROSS_REGIONS = ("mast", "federated")

# Too little for all, so that quotas count.
TENANTS = {"ads": Tenant(quota=2), "web": Tenant(quota=3)}

SCENARIOS = CASES // 40


def scenario(
    seed: int, *, regions: bool = False
) -> tuple[ClusterTree, list[Job], dict, float | None]:
    """A random cluster with jobs, some elastic; what fails; and the interval of checkpoints.

    With `regions` the same racks and jobs, with clusters and regions around the racks.
    """
    draw = Random(seed)
    sizes = range(draw.randint(1, 3))
    racks = [[draw.choice([1, 2, 4]) for _ in range(draw.randint(1, 3))] for _ in sizes]
    tree = nested(("machine", "rack", "network"), racks)
    if regions:  # a cluster for each rack, and a region for the first one
        levels = ("machine", "rack", "cluster", "region", "network")
        tree = nested(
            levels, [[[rack] for rack in part] for part in (racks[:1], racks[1:]) if part]
        )
    team = Random(-seed)
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
                tenant=team.choice(["ads", "web", None]),
                priority=team.choice([1, 4, 7, None]),
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
    model["slow"] = [
        {"kind": "machine", "unit": 0, "speed": 0.7},
        {"kind": "rack", "unit": 0, "speed": 0.4, "at_s": 40.0, "duration_s": 25.0},
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


def assert_nobody_starts_on_notice(rows: Rows, tree: ClusterTree) -> None:
    """From a notice until its outage, nobody gets GPUs of the unit."""
    ends = {(row.handle, row.end, row.placement) for row in rows.placements}
    starts = [x for x in rows.placements if (x.handle, x.start, x.placement) not in ends]
    for notice in rows.notices:
        level = tree.level_names.index(notice.outage.kind)
        inside = frozenset(tree.leaves(level, notice.outage.unit))
        for row in starts:
            late = notice.tick <= row.start < notice.until and row.end > row.start
            assert not (late and not inside.isdisjoint(row.placement.leaves))


def opened(name: str, cell: str = "") -> Policy:
    """A policy with tenants, if it knows any; `learned` with weights that come with artist."""
    options: dict[str, Any] = {"cell": int(cell)} if cell else {}
    if name == "learned":
        options = {"weights": str(SHIPPED / "rl-hybrid.npz")}
    return open_policy(name, options, FIRST_DRAWS, TENANTS)


def assert_lawful(policy: str, seed: int) -> int:
    """Run a scenario; the number of times that a failure stopped a job."""
    name, _, cell = policy.partition(", cell ")
    tree, jobs, model, interval_s = scenario(seed, regions=name in ACROSS_REGIONS)
    rows, failures = run_with_failures(
        tree, jobs, model, policy=opened(name, cell), interval_s=interval_s, cost_s=0.5, seed=seed
    )
    assert_nobody_starts_on_notice(rows, tree)
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


def test_every_policy_of_the_table_is_among_them() -> None:
    tested = {name.partition("(")[0] for name in POLICIES}
    assert tested == {entry.id for entry in TABLE}


@pytest.mark.slow
@pytest.mark.parametrize("policy", [*POLICIES, *MORE])
def test_the_laws_hold_under_failures_in_many_scenarios(policy: str) -> None:
    assert sum(assert_lawful(policy, seed) for seed in range(SCENARIOS)) > SCENARIOS
