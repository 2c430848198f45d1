"""Small real things that many tests need: clusters, jobs, a scripted policy, a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from artist.cluster.placement import Placement
from artist.cluster.tree import ClusterTree, Nested, nested
from artist.contract import BasePolicy, ClusterView, Decision, JobView, Policy
from artist.engine.progress import Rate
from artist.engine.rows import PlacementRow, Rows
from artist.engine.simulator import Simulator
from artist.estimates.query import Estimate
from artist.network.alone import AloneRates, RateFunction
from artist.policies.table import POLICIES
from artist.units import TICKS_PER_S, Tick, seconds, ticks
from artist.workload.job import Job

S = TICKS_PER_S


def cluster(*racks: Nested) -> ClusterTree:
    """`cluster([8, 8], [4])`: two racks of machines with so many GPUs."""
    return nested(("machine", "rack", "network"), racks)


def job(name: str, gpus: int = 1, iterations: int = 10, **fields: Any) -> Job:
    """A job of one-second iterations that arrives at 0."""
    fields = {"arrival_s": 0.0, "model": "any", "compute_s": 1.0, **fields}
    return Job(id=name, gpus=gpus, iterations=iterations, **fields)


def on(taken: Mapping[int, int]) -> Placement:
    """A placement: leaf -> GPUs."""
    return Placement.of(taken)


class EstimateByLevel:
    """Communication over compute, by the level that a signature spans."""

    def __init__(self, rack: float = 0.0, network: float = 0.0) -> None:
        self.rack = rack
        self.network = network

    def __call__(self, model: str, signature: str) -> Estimate:
        """So many nanoseconds more than a second of compute."""
        ratio = self.network if "/" in signature else self.rack if "," in signature else 0.0
        return Estimate(round(S * (1 + ratio)), S, "by-level")


class Script(BasePolicy):
    """Decisions by the second at which they are made; keeps what it saw."""

    def __init__(self, decisions: Mapping[float, Sequence[Decision]]) -> None:
        self.decisions = {ticks(at): answer for at, answer in decisions.items()}
        self.asked: list[Tick] = []
        self.lease_ends: list[tuple[float, list[int]]] = []

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        """Answer what the script says for now."""
        self.asked.append(view.now)
        if view.lease_ended:
            self.lease_ends.append((seconds(view.now), [job.order for job in view.lease_ended]))
        return self.decisions.get(view.now, ())


class Speeds:
    """A rate function out of `speed(now, order) -> iterations per second`, for every running job.

    It keeps its calls: (now, orders of the changed jobs).
    """

    def __init__(self, speed: Callable[[Tick, int], float]) -> None:
        self.speed = speed
        self.calls: list[tuple[Tick, list[int]]] = []

    def __call__(
        self, now: Tick, running: Mapping[int, JobView], changed: Sequence[JobView]
    ) -> Mapping[int, Rate]:
        """Rates of all running jobs."""
        self.calls.append((now, [view.order for view in changed]))
        speeds = {order: self.speed(now, order) for order in running}
        return {order: rate(1 / speed) for order, speed in speeds.items()}

    def alone_iteration_s(self, job: Job, placement: Placement) -> float:
        """One second."""
        return 1.0


def rate(iteration_s: float, share: float = 1.0, until: float | None = None) -> Rate:
    """Iterations of so many seconds, each worth a share of a submitted one."""
    return Rate(iteration_s, share / iteration_s, "test", iteration_s, until)


def simulator(
    tree: ClusterTree,
    jobs: Sequence[Job],
    rates: RateFunction | None = None,
    *,
    lease_s: float | None = None,
) -> Simulator:
    """A checked simulator; without rates there is no communication."""
    rates = rates or AloneRates(tree, EstimateByLevel())
    lease = None if lease_s is None else ticks(lease_s)
    return Simulator(tree, jobs, rates, lease=lease, check=True)


def run(
    tree: ClusterTree,
    jobs: Sequence[Job],
    policy: Policy,
    rates: RateFunction | None = None,
    *,
    lease_s: float | None = None,
) -> Rows:
    """A whole checked run."""
    return simulator(tree, jobs, rates, lease_s=lease_s).run(policy)


def make_policy(name: str, **options: Any) -> Policy:
    """A registered policy by name."""
    entry = POLICIES[name]
    implementation = entry.load()
    chosen = implementation.Options.model_validate({**entry.preset, **options})
    policy: Policy = implementation(chosen)
    return policy


def finishes(rows: Rows) -> dict[str, float]:
    """Finish of each job, in seconds."""
    return {row.job.id: seconds(row.finish) for row in rows.jobs}


def intervals(rows: Rows, order: int) -> list[PlacementRow]:
    """A job's rows in the order of time."""
    return [row for row in rows.placements if row.job == order]
