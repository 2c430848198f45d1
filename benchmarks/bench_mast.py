"""Times MAST: a pass over 10,000 waiting jobs, a plan that preempts in a full region, a day.

The paper: 34 s for 6,000 to 10,000 workloads; 5.5 ms for a plan with preemption (section 5.4).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement
from artist.cluster.tree import ClusterTree, nested
from artist.contract import NO_SHARED_LINKS, JobView, Rate
from artist.engine.simulator import Simulator
from artist.policies.mast.books import Books
from artist.policies.mast.cells import Cells
from artist.policies.mast.plans import placed
from artist.policies.mast.policy import Mast
from artist.policies.mast.queue import Where
from artist.policies.quota.ledger import LAST_CLASS
from artist.rng import stream
from artist.units import TICKS_PER_S, Tick
from artist.workload.job import Job
from artist.workload.tenants import Tenant

LEVELS = ("machine", "rack", "cluster", "region", "network")
TENANTS = 50
WAITING = 10_000
PLANS = 500
DAY_S = 86_400.0
JOBS = 100_000


def world(regions: int, clusters: int = 20, racks: int = 16) -> ClusterTree:
    """Clusters of racks of eight machines with eight GPUs: 20,480 GPUs a region."""
    return nested(LEVELS, [[[[8] * 8] * racks] * clusters] * regions)


def workloads(count: int, seed: int, tree: ClusterTree, load: float) -> list[Job]:
    """Jobs of a day, with the quantiles of section 5.1; they want `load` times the GPUs."""
    rng = stream(seed, "bench.mast")
    gpus = rng.choice((8, 16, 32, 64, 128), count, p=(0.30, 0.35, 0.20, 0.12, 0.03))
    run_s = np.clip(1200 * np.exp(2.3 * rng.standard_normal(count)), 60, DAY_S)
    run_s *= load * tree.gpus * DAY_S / float(gpus @ run_s)
    shares = (0.03, 0.20, 0.16, 0.5428, 0.002, 0.005, 0.0002, 0.06)
    priority = rng.choice(8, count, p=shares)
    arrival_s = np.sort(rng.random(count)) * DAY_S
    return [
        Job(
            id=str(x),
            arrival_s=float(arrival_s[x]),
            gpus=int(gpus[x]),
            model="unknown",
            iterations=max(1, int(run_s[x])),
            compute_s=1.0,
            tenant=f"team-{x % TENANTS}",
            priority=int(priority[x]) + 1 if priority[x] < 7 else None,
        )
        for x in range(count)
    ]


def tenants(tree: ClusterTree) -> dict[str, Tenant]:
    """Quotas that are together as large as the cluster."""
    return {f"team-{x}": Tenant(quota=tree.gpus // TENANTS) for x in range(TENANTS)}


def bench_pass(measure: Callable[..., None]) -> None:
    """Class and credit of 10,000 waiting jobs, and their queue again."""
    tree = world(1)
    policy = Mast(Mast.Options(), tenants=tenants(tree))
    for handle, job in enumerate(workloads(WAITING, 1, tree, 1.0)):
        policy._ledger.enter(handle, job, round(job.arrival_s * TICKS_PER_S))
        policy._where[handle] = Where((handle % 5,))
    now = round(DAY_S * TICKS_PER_S)
    measure(lambda: policy.rank_all(now), rounds=9)


def bench_plan(measure: Callable[..., None]) -> None:
    """Plans with victims, carried out: 20 clusters, 20,480 GPUs, all of them held."""
    tree = world(1)
    books, free, started = Books(tree), FreeGpus(tree), dict[int, Placement]()
    rng = stream(2, "bench.mast.full")
    handle = 0
    for machine in range(0, len(tree.levels[0]), 2):
        for own in ([machine, machine + 1],) if rng.random() < 0.5 else ([machine], [machine + 1]):
            placement = Placement.of(dict.fromkeys(own, 8))
            free.claim(placement)
            books.start(handle, int(rng.integers(4, LAST_CLASS + 1)), placement, handle)
            started[handle] = placement
            handle += 1
    cells = Cells(6, books)
    wanted = rng.choice((8, 16, 32, 64, 128), PLANS, p=(0.30, 0.35, 0.20, 0.12, 0.03)).tolist()

    def plan_all() -> None:
        nonlocal handle
        for gpus in wanted:
            plan = cells.plan(free, Where((0,)), gpus, 3)
            assert plan is not None and plan.victims  # all GPUs are held, most by later classes
            fallen = [(x, books.stop(x).rank) for x in plan.victims]
            for victim, _ in fallen:
                free.release(started[victim])
            placement = placed(free, plan, gpus)
            free.claim(placement)
            # As it was, so that all plans see a full region.
            free.release(placement)
            for victim, rank in fallen:
                free.claim(started[victim])
                books.start(victim, rank, started[victim], handle)
                handle += 1

    measure(plan_all, rounds=3, items=PLANS)


class ComputeOnly:
    """Every job runs as long as its trace says."""

    links = NO_SHARED_LINKS

    def __call__(
        self, now: Tick, running: Mapping[int, JobView], changed: Sequence[JobView]
    ) -> Mapping[int, Rate]:
        """Rates of the changed jobs."""
        return {x.handle: RATE for x in changed if x.placement}

    def alone(self, job: Job, placement: Placement) -> Rate:
        """The one rate."""
        return RATE


RATE = Rate(1.0, 1.0, "none", 1.0)


def bench_day(measure: Callable[..., None]) -> None:
    """The simulation loop over a day: 100,000 jobs on 102,400 GPUs in five regions, load 1.1."""
    tree = world(5)
    jobs = workloads(JOBS, 3, tree, 1.1)

    def day() -> None:
        policy = Mast(Mast.Options(), tenants=tenants(tree))
        Simulator(tree, jobs, ComputeOnly()).run(policy)

    measure(day, rounds=1, items=JOBS)
