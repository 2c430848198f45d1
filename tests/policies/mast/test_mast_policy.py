"""Does MAST choose as its paper says, and what do the other cells of Table 1 lose?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from support import job

from artist.cluster.free_gpus import FreeGpus, Unit
from artist.cluster.placement import Placement
from artist.cluster.tree import ClusterTree, Nested, nested
from artist.contract import ClusterView
from artist.engine.rows import Rows
from artist.engine.simulator import Simulator
from artist.policies.mast.books import Books
from artist.policies.mast.cells import Cells
from artist.policies.mast.plans import GangPlan, best, free_plan, preempting_plan
from artist.rng import FIRST_DRAWS
from artist.run import open_policy
from artist.testing import LevelRates
from artist.units import seconds
from artist.workload.job import Job
from artist.workload.tenants import Tenant

LEVELS = ("machine", "rack", "cluster", "region", "network")


def world(*regions: Nested) -> ClusterTree:
    """Regions of clusters of racks of machines of this many GPUs."""
    return nested(LEVELS, regions)


RACK = [4, 4]
TWO_REGIONS = world([[RACK, RACK], [RACK]], [[RACK], [RACK, RACK]])


class Held:
    """Which regions hold a job's tables, as the tables' names say: `0` or `0,1`."""

    copied = False

    def regions_holding(self, one: Job) -> tuple[int, ...]:
        """The regions in the name."""
        return tuple(int(x) for x in one.tables[0].split(",")) if one.tables else (0, 1)

    def missing_bytes(self, one: Job, region: int) -> int:
        """A byte where it is not held."""
        return int(region not in self.regions_holding(one))


class WithData:
    """A policy that is shown data."""

    def __init__(self, policy: Any) -> None:
        self.policy = policy
        self.lease = policy.lease

    def decide(self, view: ClusterView) -> Sequence[Any]:
        """Decide as the policy does."""
        return self.policy.decide(view._replace(data=Held()))


def run(
    tree: ClusterTree,
    made: Sequence[Job],
    tenants: Mapping[str, Tenant] | None = None,
    **options: Any,
) -> Rows:
    """Simulate, with every invariant checked."""
    policy = open_policy("mast", options, FIRST_DRAWS, tenants or {})
    simulator = Simulator(tree, made, LevelRates(tree, slowdown=0.0), check=True)
    return simulator.run(WithData(policy))


def random_jobs(seed: int, count: int = 60) -> list[Job]:
    """Jobs of 1 to 32 GPUs of three tenants, each in some regions."""
    rng = np.random.default_rng(seed)
    return [
        job(
            f"job-{index}",
            int(2 ** rng.integers(0, 6)) if rng.random() < 0.9 else int(rng.integers(1, 40)),
            int(rng.integers(1, 900)),
            arrival_s=float(arrival_s),
            tenant=("ads", "web", None)[int(rng.integers(0, 3))],
            priority=(1, 2, 3, 4, 7, None)[int(rng.integers(0, 6))],
            tables=(("0",), ("1",), ("0,1",), ())[int(rng.integers(0, 4))],
        )
        for index, arrival_s in enumerate(np.sort(rng.integers(0, 4000, count)).tolist())
    ]


QUOTAS = {"ads": Tenant(quota=16), "web": Tenant(quota=24)}


@pytest.mark.parametrize("seed", range(10))
def test_plans_by_region_and_an_auction_choose_what_one_plan_over_all_chooses(seed: int) -> None:
    """Section 4.1: of jobs placed one at a time, (6) equals (9), job by job."""
    made = random_jobs(seed)
    six, nine = (run(TWO_REGIONS, made, QUOTAS, cell=cell) for cell in (6, 9))
    assert six.placements == nine.placements
    assert any(row.reason == "preempted" for row in six.placements)


@pytest.mark.parametrize("cell", [1, 3, 5])
def test_smaller_scopes_choose_otherwise(cell: int) -> None:
    made = random_jobs(0)
    assert run(TWO_REGIONS, made, cell=cell).placements != run(TWO_REGIONS, made).placements


@pytest.mark.parametrize("cell", [1, 3, 5, 6, 9])
def test_a_gang_lies_in_one_cluster_and_where_its_data_is(cell: int) -> None:
    made = [x for x in random_jobs(3) if x.gpus <= 16]
    rows = run(TWO_REGIONS, made, QUOTAS, cell=cell)
    for row in rows.placements:
        assert row.tier <= LEVELS.index("cluster")
        region = TWO_REGIONS.ancestor(0, row.placement.leaves[0], LEVELS.index("region"))
        assert region in Held().regions_holding(made[row.handle])


def start_of(rows: Rows, handle: int) -> float:
    """When a job first got GPUs."""
    return min(seconds(row.start) for row in rows.placements if row.handle == handle)


def test_joint_placement_beats_one_job_at_a_time() -> None:
    """The case of section 4.1: the first job could go anywhere, the second only to region 0.

    Region 1 is left with more free GPUs, so one at a time chooses region 0 for the first job.
    """
    tree = world([[RACK]], [[[4, 4, 4]]])
    made = [job("first", 8, 100), job("second", 8, 100, tables=("0",))]
    alone, joint = (run(tree, made, cell=9, joint=n) for n in (1, 2))
    assert (start_of(alone, 0), start_of(alone, 1)) == (0.0, 100.0)
    assert (start_of(joint, 0), start_of(joint, 1)) == (0.0, 0.0)


def test_a_job_bound_early_waits_although_gpus_are_free() -> None:
    """A federation binds by load at arrival; MAST takes what is free when the job's turn comes."""
    tree = world([[RACK]], [[RACK]])
    made = [
        job("long", 8, 1000),
        job("short", 8, 10),
        job("late", 8, 10, arrival_s=5.0),
        job("later", 8, 10, arrival_s=6.0),
    ]
    late = {cell: start_of(run(tree, made, cell=cell), 2) for cell in (1, 3, 5, 6, 9)}
    assert late == {1: 1000.0, 3: 10.0, 5: 1000.0, 6: 10.0, 9: 10.0}


@pytest.mark.parametrize("cell", [1, 3, 5, 6, 9])
def test_a_gang_is_bound_to_no_region_whose_clusters_are_too_small(cell: int) -> None:
    """Region 0 has 12 GPUs in clusters of 4, and is visited first; region 1 has a cluster of 8."""
    tree = world([[[4]], [[4]], [[4]]], [[RACK]])
    where = Cells(cell, Books(tree)).where(FreeGpus(tree), 0, 8, (0, 1))
    assert where.regions == ((1,) if cell in (1, 5) else (0, 1))
    rows = run(tree, [job("gang", 8, 10)], cell=cell)
    assert start_of(rows, 0) == 0.0
    assert rows.placements[0].placement.leaves == (3, 4)


def plans_of(held: Mapping[str, tuple[int, int, int, float]]) -> tuple[Books, FreeGpus]:
    """Books of one region with two clusters of 16; name -> (cluster, machines, class, start)."""
    tree = world([[[4, 4, 4, 4]], [[4, 4, 4, 4]]])
    books, free = Books(tree), FreeGpus(tree)
    used = [0, 4]
    for handle, (cluster, machines, rank, started) in enumerate(held.values()):
        first = used[cluster]
        used[cluster] += machines
        placement = Placement.of(dict.fromkeys(range(first, first + machines), 4))
        free.claim(placement)
        books.start(handle, rank, placement, round(started))
    return books, free


def choice(held: Mapping[str, tuple[int, int, int, float]], gpus: int) -> tuple[int, list[str]]:
    """The cluster that a job of class 1 gets, and which jobs are preempted for it."""
    books, free = plans_of(held)
    region = Unit(LEVELS.index("region"), 0)
    plan = free_plan(free, books, region, gpus)
    if plan is None:
        clusters = [Unit(LEVELS.index("cluster"), c) for c in (0, 1)]
        plan = best(preempting_plan(free, books, x, gpus, 1) for x in clusters)
    assert isinstance(plan, GangPlan)
    cluster = books.tree.ancestor(plan.level, plan.unit, LEVELS.index("cluster"))
    return cluster, [list(held)[x] for x in plan.victims]


FULL_ONE = {"x": (1, 4, 9, 0.0)}


@pytest.mark.parametrize(
    ("held", "gpus", "cluster", "victims"),
    [
        # No job is preempted: cluster 0 has room.
        ({"a": (0, 2, 9, 0.0), **FULL_ONE}, 8, 0, []),
        # A victim of a later class, although two are preempted there.
        ({"a": (0, 4, 5, 0.0), "b": (1, 2, 9, 0.0), "c": (1, 2, 9, 1.0)}, 16, 1, ["b", "c"]),
        # Equal classes: fewer are preempted.
        ({"a": (0, 4, 9, 5.0), "b": (1, 2, 9, 0.0), "c": (1, 2, 9, 1.0)}, 16, 0, ["a"]),
        # Equally many: the one that has run longer.
        ({"a": (0, 4, 9, 5.0), "b": (1, 4, 9, 2.0)}, 16, 1, ["b"]),
        # In a cluster: the last class, then the longest run.
        ({"a": (0, 4, 1, 0.0), "d": (1, 2, 8, 0.0), "b": (1, 1, 9, 2.0), "c": (1, 1, 9, 5.0)},
         4, 1, ["b"]),
        # Scanned are b, c and d; then the largest suffices.
        ({"a": (0, 4, 1, 0.0), "b": (1, 1, 9, 0.0), "d": (1, 3, 9, 2.0)}, 12, 1, ["d"]),
    ],
)  # fmt: skip
def test_the_best_plan_is_chosen(held, gpus, cluster, victims) -> None:
    assert choice(held, gpus) == (cluster, victims)


def test_a_gang_keeps_to_a_rack_where_one_has_room() -> None:
    tree = world([[[4, 4], [4, 4, 4, 4]]])
    rows = run(tree, [job("a", 4, 100), job("b", 16, 10)])
    assert {row.handle: row.tier for row in rows.placements} == {0: 0, 1: 1}


def test_the_books_say_what_a_sum_over_the_running_jobs_says() -> None:
    rng = np.random.default_rng(5)
    tree = TWO_REGIONS
    books, free, held = Books(tree), FreeGpus(tree), dict[int, Placement]()
    for handle in range(300):
        if held and rng.random() < 0.45:
            gone = list(held)[int(rng.integers(0, len(held)))]
            free.release(held.pop(gone))
            books.stop(gone)
        gpus = int(rng.integers(1, 9))
        leaf = int(rng.integers(0, len(tree.levels[0])))
        if free.of(0, leaf) >= min(gpus, 4):
            placement = Placement.of({leaf: min(gpus, 4)})
            free.claim(placement)
            held[handle] = placement
            books.start(handle, int(rng.integers(1, 10)), placement, handle)
        assert not books.moved(free)
        for cluster in range(len(tree.levels[2])):
            for rank in range(1, 10):
                later = sum(
                    gpus
                    for x in books.running.values()
                    for c, gpus in x.parts
                    if c == cluster and x.rank > rank
                )
                assert books.room[cluster][rank] == free.of(2, cluster) + later
