"""Do the invariants hold for any cluster, trace and policy? Every run is checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import elastic_jobs, trees
from support import SELF_SUFFICIENT, EstimateByLevel, intervals, make_policy, run, simulator

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement
from artist.cluster.placement_shape import Shape, gpus_of
from artist.cluster.tree import ClusterTree
from artist.contract import (
    NO_SHARED_LINKS,
    BasePolicy,
    ClusterView,
    Decision,
    Hold,
    JobView,
    Migrate,
    OutsideEvent,
    Preempt,
    Rate,
    Restore,
    Start,
    Wake,
    Withdraw,
)
from artist.engine.rows import EndReason, JobRow, PlacementRow, Rows
from artist.estimates.calibration import with_constant_share
from artist.estimates.query import Estimate
from artist.network.rates.isolated import AloneRates
from artist.policies.table import POLICIES
from artist.results.lower_bound import makespan_bound
from artist.units import TICKS_PER_S, Tick, seconds, ticks
from artist.workload.job import Job

STAYS = (EndReason.RE_RATED, EndReason.HELD, EndReason.MIGRATED)

every_policy = pytest.mark.parametrize("policy", SELF_SUFFICIENT)
examples = settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def cases(draw: st.DrawFn) -> tuple[ClusterTree, list[Job]]:
    tree = draw(trees())
    return tree, draw(elastic_jobs(tree, 3600.0, 200))


def simulated(policy: str, tree: ClusterTree, jobs: Sequence[Job]) -> Rows:
    """A checked run; leases of a minute so that jobs compete often."""
    entry = POLICIES[policy].load().Options.model_fields
    chosen = make_policy(policy, **({"lease_s": 60.0} if "lease_s" in entry else {}))
    rates = AloneRates(tree, EstimateByLevel(tree, rack=0.21, network=1.7))
    lease_s = None if chosen.lease is None else seconds(chosen.lease)
    return run(tree, jobs, chosen, rates, lease_s=lease_s)


@every_policy
@examples
@given(case=cases())
def test_every_job_does_its_work_in_one_place_at_a_time_and_no_faster_than_it_can(
    policy: str, case: tuple[ClusterTree, list[Job]]
) -> None:
    tree, jobs = case
    rows = simulated(policy, tree, jobs)
    assert_lawful(rows, jobs)
    for part in rows.placements:
        worked = part.iterations * part.iteration_s * TICKS_PER_S
        assert abs(part.end - part.start - part.stalled - part.lost - worked) < 2
    # A second run, with other names, gives the same rows.
    renamed = [replace(job, id=f"{len(jobs) - index}") for index, job in enumerate(jobs)]
    again = simulated(policy, tree, renamed)
    assert rows.placements == again.placements
    assert rows.timeline == again.timeline
    assert [row[1:] for row in rows.jobs] == [row[1:] for row in again.jobs]


SHARES = {"small": 0.0, "large": 0.38}
"""Constant shares, as a calibration gives them: what every placement of several GPUs pays."""


@every_policy
@settings(examples, max_examples=6)
@given(case=cases())
def test_no_policy_beats_the_bound_on_the_makespan(
    policy: str, case: tuple[ClusterTree, list[Job]]
) -> None:
    # Elastic jobs, restarts, and communication by level on top of the constant share.
    tree, jobs = case
    by_level = EstimateByLevel(tree, network=0.4)

    def estimate(model: str, shape: Shape) -> Estimate:
        share = SHARES[model] if gpus_of(shape) > 1 else 0.0
        return with_constant_share(by_level(model, shape), share)

    rows = run(tree, jobs, make_policy(policy), AloneRates(tree, estimate), lease_s=60.0)
    first, end = makespan_bound(rows.jobs, tree.gpus, SHARES.__getitem__)
    assert first == min(row.arrival for row in rows.jobs)
    assert first < end <= max(row.finish for row in rows.jobs)


def assert_lawful(rows: Rows, jobs: Sequence[Job]) -> None:
    assert sorted(row.handle for row in rows.jobs) == list(range(len(jobs)))
    for row in rows.jobs:
        parts = intervals(rows, row.handle)
        assert_work_is_done_once(row, parts)
        assert_no_gaps_or_overlaps(row, parts)
        fastest = row.job.gpus_max / row.job.gpus
        assert row.run >= ticks(row.job.ideal_s / fastest) - 1


def assert_work_is_done_once(row: JobRow, parts: Sequence[PlacementRow]) -> None:
    """The iterations of all intervals are the job's; at most the last is worth too much."""
    worth = sum(part.iterations * part.placement.gpus for part in parts) / row.job.gpus
    last = parts[-1].placement.gpus / row.job.gpus
    assert row.job.iterations <= worth + 1e-9 < row.job.iterations + max(1.0, last)


def assert_no_gaps_or_overlaps(row: JobRow, parts: Sequence[PlacementRow]) -> None:
    assert parts[0].start == row.start >= row.arrival == ticks(row.job.arrival_s)
    assert parts[-1].end == row.finish
    assert sum(part.end - part.start for part in parts) == row.run
    for one, other in pairwise(parts):
        assert one.end <= other.start
        if one.reason in STAYS:
            assert one.end == other.start
    ends = Counter(part.reason for part in parts)
    assert ends[EndReason.FINISHED] == 1
    assert ends[EndReason.MIGRATED] == row.migrations
    lost = (EndReason.PREEMPTED, EndReason.LEASE_ENDED, EndReason.WITHDRAWN)
    assert sum(ends[reason] for reason in lost) == row.preemptions


class Whims(BasePolicy):
    """Any valid decision at any time: starts anywhere, swaps, preempts and wakes itself up."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.questions = 0

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        """Random decisions for a hundred questions, then whatever lets all jobs finish."""
        self.questions += 1
        free = view.free.copy()
        decisions: list[Decision] = []
        moving = []
        for state in view.running.values():
            whim = "stay" if self.calm else self.random.choice(["stay", "stay", "go", "move"])
            if whim != "stay":
                free.release(state.placement)
            if whim == "go":
                decisions.append(Preempt(state.handle))
            if whim == "move":
                moving.append(state)
        for state in moving:  # a job that moves has priority, so that it finds room
            placement = self.somewhere(free, state.job.gpus_min, state.job.gpus_max)
            move = Migrate(state.handle, placement) if placement else Preempt(state.handle)
            decisions.append(move)
        for state in view.waiting.values():
            if self.calm or self.random.random() < 0.7:
                placement = self.somewhere(free, state.job.gpus_min, state.job.gpus_max)
                if placement:
                    decisions.append(Start(state.handle, placement))
        if not self.calm:
            stopped = {choice.handle for choice in decisions if isinstance(choice, Preempt)}
            decisions += [
                Hold(handle, view.now + self.random.randint(1, 10**10))
                for handle in view.running
                if handle not in stopped and self.random.random() < 0.1
            ]
        self.random.shuffle(decisions)
        if not self.calm:
            decisions.append(Wake(view.now + self.random.randint(1, 20 * TICKS_PER_S)))
        return decisions

    @property
    def calm(self) -> bool:
        return self.questions > 100

    def somewhere(self, free: FreeGpus, least: int, most: int) -> Placement | None:
        """Random free GPUs."""
        if free.total < least:
            return None
        wanted = (
            min(most, free.total)
            if self.calm
            else self.random.randint(least, min(most, free.total))
        )
        counts = free.counts(0).tolist()
        gpus = [leaf for leaf, count in enumerate(counts) for _ in range(count)]
        placement = Placement.of(Counter(self.random.sample(gpus, wanted)))
        free.claim(placement)
        return placement


class Weather:
    """A rate function that makes every running job faster or slower at every query."""

    links = NO_SHARED_LINKS

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def __call__(
        self, now: Tick, running: Mapping[int, JobView], changed: Sequence[JobView]
    ) -> Mapping[int, Rate]:
        """At best as fast as the job's compute time."""
        return {handle: self.rate(view, now) for handle, view in running.items()}

    def rate(self, view: JobView, now: Tick) -> Rate:
        """A rate that sometimes asks to be queried again."""
        iteration_s = view.job.compute_s * self.random.choice([1.0, 1.1, 3.0])
        share = view.placement.gpus / view.job.gpus
        iteration = self.random.choice([None, self.random.uniform(0, view.job.iterations)])
        tick = self.random.choice([None, now + self.random.randint(-(10**9), 10**11)])
        return Rate(iteration_s, share, "weather", view.job.compute_s, iteration, tick)

    def alone(self, job: Job, placement: Placement) -> Rate:
        """Good weather."""
        return Rate(job.compute_s, placement.gpus / job.gpus, "weather", job.compute_s)


class Outages:
    """Random GPUs leave service for a while, one machine's at a time."""

    def __init__(self, seed: int, tree: ClusterTree) -> None:
        self.random = Random(seed)
        self.tree = tree
        self.out: Placement | None = None
        self.events = 0

    def next_event(self, now: Tick) -> OutsideEvent | None:
        """Twenty times out of service and back again."""
        at = now + self.random.choice([0, self.random.randint(1, 10**11)])
        if self.out is not None:
            placement, self.out = self.out, None
            return Restore(at, placement)
        self.events += 1
        if self.events > 20:
            return None
        leaf = self.random.randrange(len(self.tree.levels[0]))
        self.out = Placement.of({leaf: self.random.randint(1, self.tree.levels[0].gpus[leaf])})
        return Withdraw(at, self.out)


@settings(examples, max_examples=50)
@given(
    case=cases(),
    seed=st.integers(0, 1000),
    lease_s=st.sampled_from([None, 2.0, 45.0]),
    outages=st.booleans(),
)
def test_the_engine_keeps_its_laws_under_any_policy_any_rates_and_any_outages(
    case: tuple[ClusterTree, list[Job]], seed: int, lease_s: float | None, outages: bool
) -> None:
    tree, jobs = case
    events = Outages(seed, tree) if outages else None
    engine = simulator(tree, jobs, Weather(seed), lease_s=lease_s, events=events)
    assert_lawful(engine.run(Whims(seed)), jobs)
