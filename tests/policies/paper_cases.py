"""Helpers for the tests of papers' policies: run small traces and read their rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from support import EstimateByLevel
from support import cluster as cluster_of

from artist.contract import Policy
from artist.engine.rows import Rows
from artist.engine.simulator import Simulator
from artist.network.rates.isolated import AloneRates
from artist.units import seconds
from artist.workload.job import Job


def job(name: str, arrival_s: float, gpus: int, iterations: int, **more: object) -> Job:
    """A job with iterations of one second. Its model is unknown, so it counts as unskewed."""
    plain = Job(name, float(arrival_s), gpus, "any", iterations, 1.0)
    return replace(plain, **{"gpus_min": gpus, "gpus_max": gpus, **more})


def simulator(policy: Policy, cluster: list[list[int]], jobs: Sequence[Job]) -> Simulator:
    tree = cluster_of(*cluster)
    rates = AloneRates(tree, EstimateByLevel(tree, rack=0.5, network=1.0))
    return Simulator(tree, jobs, rates, lease=policy.lease, check=True)


def run(policy: Policy, cluster: list[list[int]], jobs: Sequence[Job]) -> Rows:
    return simulator(policy, cluster, jobs).run(policy)


def times(rows: Rows) -> dict[str, tuple[float, float]]:
    """Start and finish by job."""
    return {row.job.id: (seconds(row.start), seconds(row.finish)) for row in rows.jobs}


def count(rows: Rows, column: str) -> dict[str, int]:
    """Preemptions or migrations by job, without zeros."""
    return {row.job.id: getattr(row, column) for row in rows.jobs if getattr(row, column)}


def leaves(rows: Rows, jobs: Sequence[Job]) -> dict[str, list[tuple[int, ...]]]:
    """Machines of each placement of each job, in time order."""
    machines: dict[str, list[tuple[int, ...]]] = {item.id: [] for item in jobs}
    for row in sorted(rows.placements, key=lambda row: row.start):
        machines[jobs[row.handle].id].append(row.placement.leaves)
    return machines
