"""Small real things that many tests need: clusters, jobs, a scripted policy, a run."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import pytest

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement
from artist.cluster.placement_shape import Shape, depth
from artist.cluster.tree import ClusterTree, Nested, nested
from artist.contract import (
    NO_SHARED_LINKS,
    BasePolicy,
    ClusterView,
    Decision,
    EventSource,
    JobView,
    OutsideEvent,
    Policy,
    Rate,
    RateFunction,
)
from artist.engine.compiled_core import core
from artist.engine.rows import PlacementRow, Rows
from artist.engine.simulator import Simulator
from artist.estimates.query import Estimate
from artist.network.rates.isolated import AloneRates
from artist.policies.table import POLICIES
from artist.run import open_policy
from artist.units import TICKS_PER_S, Tick, seconds, ticks
from artist.workload.job import Job

S = TICKS_PER_S

CASES = int(os.environ.get("CASES", "2000"))
"""Random cases that the long comparisons with naive simulators try; `make oracles` tries more."""

NETWORKS = ("learned", "rl-base", "rl-hybrid")
LINEAR_PROGRAMS = ("gavel", "gavel-ftf", "gavel-makespan", "sia")
"""These need SciPy, an extra."""

LACKING = NETWORKS if find_spec("scipy") else (*NETWORKS, *LINEAR_PROGRAMS)
SHARING = ("lucid",)
"""These let jobs share GPUs whatever their options are (tests/policies/test_lucid.py)."""

SELF_SUFFICIENT = [x.id for x in POLICIES if not x.wraps and x.id not in (*LACKING, *SHARING)]
"""Policies without another inside (tests/policies/cassini), network (tests/rl) or lacking extra,
of which each job has GPUs of its own."""

interpreted = pytest.mark.skipif(core() == "compiled", reason="compiled rules cannot be lifted")
"""Of tests that replace a method of a policy or of the core."""

_IN_PERIODS = ("pollux", "sia", "equal-share", "max-throughput", "optimus", "tiresias-rounds")


def longer_rounds(policy: str) -> dict[str, float]:
    """Options for jobs that take hours, where rounds of a minute would make thousands of them."""
    if policy.startswith("gavel"):
        return {"round_s": 3600.0}
    return {"period_s": 3600.0} if policy in _IN_PERIODS else {}


def short_turns(policy: str) -> dict[str, float]:
    """Options with which jobs of a minute take turns."""
    if policy in ("dally", "tiresias", "las"):
        return {"lease_s": 60.0}
    return {"quantum_s": 30.0} if policy == "gandiva" else {}


def cluster(*racks: Nested) -> ClusterTree:
    """`cluster([8, 8], [4])`: two racks of machines with this many GPUs."""
    return nested(("machine", "rack", "network"), racks)


def job(name: str, gpus: int = 1, iterations: int = 10, **fields: Any) -> Job:
    """A job of one-second iterations that arrives at 0."""
    fields = {"arrival_s": 0.0, "model": "any", "compute_s": 1.0, **fields}
    return Job(id=name, gpus=gpus, iterations=iterations, **fields)


def with_free(racks: Sequence[Sequence[int]], *free: int) -> FreeGpus:
    """Machines of the given sizes by rack, of which this many GPUs are free."""
    state = FreeGpus(cluster(*racks))
    sizes = [size for rack in racks for size in rack]
    taken = {unit: size - free[unit] for unit, size in enumerate(sizes) if free[unit] < size}
    if taken:
        state.claim(on(taken))
    return state


def on(taken: Mapping[int, int]) -> Placement:
    """A placement: leaf -> GPUs."""
    return Placement.of(taken)


class EstimateByLevel:
    """Communication over compute, by the level that a shape spans: rack, or anything outside."""

    def __init__(self, tree: ClusterTree, rack: float = 0.0, network: float = 0.0) -> None:
        self.machine = tree.machine
        self.rack = rack
        self.network = network

    def __call__(self, model: str, shape: Shape) -> Estimate:
        """This many nanoseconds more than a second of compute."""
        level = depth(shape) - self.machine
        ratio = 0.0 if level < 1 else self.rack if level == 1 else self.network
        return Estimate(round(S * (1 + ratio)), S, "by-level")


class Script(BasePolicy):
    """Decisions by the second at which they are made; keeps what it saw."""

    def __init__(self, decisions: Mapping[float, Sequence[Decision]]) -> None:
        self.decisions = {ticks(at): answer for at, answer in decisions.items()}
        self.asked: list[Tick] = []
        self.waiting: list[list[int]] = []
        self.lease_ends: list[tuple[float, list[int]]] = []

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        """Answer what the script says for now."""
        self.asked.append(view.now)
        self.waiting.append(list(view.waiting))
        if view.lease_ended:
            self.lease_ends.append((seconds(view.now), [job.handle for job in view.lease_ended]))
        return self.decisions.get(view.now, ())


class Rates:
    """A rate function out of `answer(now, running)`.

    It keeps its calls: (now, handles of the changed jobs).
    """

    links = NO_SHARED_LINKS

    def __init__(self, answer: Callable[[Tick, Mapping[int, JobView]], Any]) -> None:
        self.answer = answer
        self.calls: list[tuple[Tick, list[int]]] = []

    def __call__(
        self, now: Tick, running: Mapping[int, JobView], changed: Sequence[JobView]
    ) -> Mapping[int, Rate]:
        """The answer for now."""
        self.calls.append((now, [view.handle for view in changed]))
        answer: Mapping[int, Rate] = self.answer(now, running)
        return answer

    def alone(self, job: Job, placement: Placement) -> Rate:
        """An iteration a second."""
        return rate(1.0)


def speeds(iterations_per_s: Callable[[Tick], float] = lambda now: 1.0) -> Rates:
    """Rates by the time alone, the same for every running job."""
    return Rates(lambda now, running: dict.fromkeys(running, rate(1 / iterations_per_s(now))))


class Outage:
    """An event source out of a list."""

    def __init__(self, *events: OutsideEvent) -> None:
        self.events = list(events)

    def next_event(self, now: Tick) -> OutsideEvent | None:
        """The next one."""
        return self.events.pop(0) if self.events else None


def rate(iteration_s: float, share: float = 1.0, until: float | None = None) -> Rate:
    """Iterations of this many seconds, each worth a share of a submitted one."""
    return Rate(iteration_s, share, "test", iteration_s, until)


def simulator(
    tree: ClusterTree,
    jobs: Sequence[Job],
    rates: RateFunction | None = None,
    *,
    lease_s: float | None = None,
    events: EventSource | None = None,
) -> Simulator:
    """A checked simulator; without rates there is no communication."""
    rates = rates or AloneRates(tree, EstimateByLevel(tree))
    lease = None if lease_s is None else ticks(lease_s)
    return Simulator(tree, jobs, rates, lease=lease, events=events, check=True)


def question(engine: Simulator) -> ClusterView:
    """The next question, of which there must be one."""
    view = engine.next_question()
    assert view is not None
    return view


def questions(
    engine: Simulator, policy: Policy
) -> Iterator[tuple[ClusterView, Policy, list[Decision]]]:
    """Each question: the view, the policy before it answers, and the answer."""
    while (view := engine.next_question(policy)) is not None:
        before = copy.deepcopy(policy)
        answer = list(policy.decide(view))
        yield view, before, answer
        engine.answer(answer)


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
    """A policy of the table with some options."""
    return open_policy(name, options)


def finishes(rows: Rows) -> dict[str, float]:
    """Finish of each job, in seconds."""
    return {row.job.id: seconds(row.finish) for row in rows.jobs}


def starts(rows: Rows) -> dict[str, float]:
    """First start of each job, in seconds."""
    return {row.job.id: seconds(row.start) for row in rows.jobs}


def intervals(rows: Rows, handle: int) -> list[PlacementRow]:
    """A job's rows in the order of time."""
    return [row for row in rows.placements if row.handle == handle]
