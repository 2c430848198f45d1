"""Helpers for the tests of papers' policies: run small traces, read rows, draw random traces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st
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


MODELS = ("vgg11", "resnet50", "mobilenetv3", "any")


@st.composite
def random_traces(draw: st.DrawFn, *, elastic: bool = False) -> tuple[list[list[int]], list[Job]]:
    """A cluster of one to three racks and up to twelve jobs that fit it."""
    machines = st.lists(st.integers(1, 4), min_size=1, max_size=3)
    cluster = draw(st.lists(machines, min_size=1, max_size=3))
    total = sum(map(sum, cluster))
    jobs = []
    for index in range(draw(st.integers(1, 12))):
        gpus = draw(st.integers(1, total))
        jobs.append(
            job(
                f"j{index}",
                draw(st.integers(0, 50)),
                gpus,
                draw(st.integers(1, 60)),
                model=draw(st.sampled_from(MODELS)),
                compute_s=draw(st.sampled_from([0.5, 1.0, 8.0])),
                gpus_min=draw(st.integers(1, gpus)) if elastic else gpus,
                gpus_max=draw(st.integers(gpus, total)) if elastic else gpus,
                restart_s=draw(st.sampled_from([0.0, 3.0])),
            )
        )
    return cluster, sorted(jobs, key=lambda item: item.arrival_s)
