"""Are the stated causes of waits true? Without the named cause, the job starts.

Small random runs stop at every question at which a policy says why a job waits. A copy of the
policy is asked the same question, but its rule is lifted for this one job.
"""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from network.runs import network, rates
from support import EstimateByLevel, interpreted, job, make_policy, questions, simulator

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement
from artist.cluster.tree import ClusterTree
from artist.contract import (
    ClusterView,
    Migrate,
    Policy,
    Preempt,
    RateFunction,
    Start,
    Wait,
)
from artist.engine.simulator import Simulator
from artist.network.rates.isolated import AloneRates
from artist.policies.dally.policy import Dally
from artist.policies.shared.placers import AnyPlacer, Placer
from artist.policies.shared.sharing import Busy, Sharing, nothing_busy
from artist.policies.themis.policy import Themis
from artist.policies.tiresias.policy import Tiresias
from artist.rng import stream
from artist.units import seconds
from artist.workload.job import Job

ON_LINKS = network()
FAR = {"placement": "consolidate-or-wait"}
SHORT = {"lease_s": 60.0}
TIMERS = {**SHORT, "machine_timer_s": 50.0, "rack_timer_s": 130.0}
APART = {"placement": "least-contended", "most_slowdown": 0.05, **SHORT}

TELLING: dict[str, tuple[str, dict[str, Any], set[str]]] = {
    "tuned timers": ("dally", TIMERS, {"timer"}),
    "fixed timers": ("dally-manual", TIMERS, {"timer"}),
    "no level further out": ("dally-fully-consolidated", SHORT, {"consolidation"}),
    "timers and links": ("dally", {**TIMERS, **APART}, {"timer", "links"}),
    "fifo": ("fifo", FAR, {"consolidation"}),
    "backfilling": ("fifo-backfill", FAR, {"consolidation"}),
    "leases": ("las", {**FAR, **SHORT}, {"consolidation"}),
    "at once": ("srtf", FAR, {"consolidation"}),
    "links": ("las", APART, {"links"}),
    "links at once": ("srsf", {"placement": "pack", "most_slowdown": 0.05}, {"links"}),
    "skewed jobs": ("tiresias", SHORT, {"consolidation"}),
    "tiresias": ("tiresias", {**FAR, **SHORT}, {"consolidation"}),
    "slices": ("gandiva", {**FAR, "quantum_s": 60.0}, {"consolidation"}),
    "auctions": ("themis", {**FAR, **SHORT}, {"consolidation"}),
}
"""Policy, options, and the causes that its runs must show."""


def crowd(seed: int, count: int = 50) -> tuple[ClusterTree, list[Job]]:
    """Jobs of 1 to 24 GPUs on four racks of two machines with eight GPUs each."""
    rng = stream(seed, "test.wait-causes")
    rows = zip(
        np.sort(rng.integers(0, 1500, count)).tolist(),
        rng.choice([1, 4, 4, 6, 8, 12, 24], count).tolist(),
        rng.integers(20, 400, count).tolist(),
        rng.choice(["vgg11", "resnet18"], count).tolist(),
        strict=True,
    )
    return ON_LINKS.tree, [
        job(f"j{index}", gpus, length, arrival_s=float(arrival_s), model=model)
        for index, (arrival_s, gpus, length, model) in enumerate(rows)
    ]


def beginning(case: str, seed: int) -> tuple[Simulator, Policy]:
    """A run at its beginning, with contention if the policy looks at links."""
    name, options, causes = TELLING[case]
    tree, jobs = crowd(seed)
    policy = make_policy(name, **options)
    lease_s = None if policy.lease is None else seconds(policy.lease)
    of_run: RateFunction = AloneRates(tree, EstimateByLevel(tree, rack=0.5, network=1.0))
    if "links" in causes:
        of_run = rates("mean", ON_LINKS)
    return simulator(tree, jobs, of_run, lease_s=lease_s), policy


class OpenTimers:
    """Timers that have all expired."""

    def opens_after(self, tree: ClusterTree, gpus: int) -> list[int]:
        return [0] * (tree.root - tree.machine + 1)


class Anywhere(Placer):
    """A placer that lets one job take any GPUs of those that it wins jointly with others."""

    def __init__(self, rule: Placer, handle: int) -> None:
        self.rule, self.handle = rule, handle

    def possible(self, free: FreeGpus, gpus: int) -> bool:
        return free.total >= gpus

    def place(self, free: FreeGpus, gpus: int, busy: Busy = nothing_busy) -> Placement | None:
        return self.rule.place(free, gpus, busy)

    def joint(self, view: ClusterView, counts: Mapping[int, int]) -> Mapping[int, Placement]:
        placed = dict(self.rule.joint(view, counts))
        if self.handle not in placed:
            left = view.free.copy()
            for handle in counts:
                if handle in view.running:
                    left.release(view.running[handle].placement)
            for placement in placed.values():
                left.claim(placement)
            placed[self.handle] = AnyPlacer().place(left, counts[self.handle])
        return placed


def lift(policy: Any, handle: int) -> None:
    """Lift the rule of a policy for one job, so that it takes any GPUs left at its turn."""
    if isinstance(policy, Dally):
        accept = policy._accept

        def accepts(sharing, busy, job, free):
            if job.handle != handle:
                return accept(sharing, busy, job, free)
            timers, policy._timers = policy._timers, OpenTimers()
            try:
                return accept(sharing, busy, job, free)
            finally:
                policy._timers = timers

        policy._accept = accepts
        policy._possible = lambda free, gpus: free.total >= gpus
    elif isinstance(policy, Themis):
        policy._placer = Anywhere(policy._placer, handle)
    else:
        place = policy._place
        policy._place = lambda sharing, job, free: (
            AnyPlacer().place(free, job.job.gpus)
            if job.handle == handle
            else place(sharing, job, free)
        )
        policy._possible = lambda free, gpus: free.total >= gpus
        policy._room = lambda contest, gpus: contest.pool.total >= gpus
        if isinstance(policy, Tiresias):  # links are off, but it drops no demand as a whole
            policy.options = policy.options.model_copy(update={"most_slowdown": math.inf})
            policy._placers = {x: Anywhere(rule, -1) for x, rule in policy._placers.items()}


def permits_also(handle: int) -> Callable[[Sharing, int, Placement], bool]:
    """`Sharing.permits` that lets one job start whatever it or others lose."""
    permits = Sharing.permits
    return lambda sharing, of, placement: of == handle or permits(sharing, of, placement)


@interpreted
@pytest.mark.parametrize("seed", [0])
@pytest.mark.parametrize("case", TELLING)
def test_without_the_cause_that_is_named_the_job_would_have_started(
    case: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, policy = beginning(case, seed)
    told = Counter[str]()
    for view, before, answer in questions(engine, policy):
        for wait in [x for x in answer if isinstance(x, Wait)]:
            told[wait.cause] += 1
            other = copy.deepcopy(before)
            with monkeypatch.context() as patch:
                if wait.cause != "links":
                    lift(other, wait.handle)
                # Where links and another rule both refuse a job, the other one is named.
                patch.setattr(Sharing, "permits", permits_also(wait.handle))
                without = other.decide(view)
            served = {x.handle for x in without if isinstance(x, Start | Migrate)}
            lost = {x.handle for x in without if isinstance(x, Preempt)}
            runs = wait.handle in view.running and wait.handle not in lost
            assert wait.handle in served or runs, (seconds(view.now), wait)
    assert set(told) == TELLING[case][2]


@interpreted
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("case", ["tuned timers", "fixed timers", "no level further out"])
def test_every_job_that_its_timers_refuse_is_said_to_wait_for_them(case: str, seed: int) -> None:
    engine, policy = beginning(case, seed)
    told: dict[int, Wait] = {}
    for view, before, answer in questions(engine, policy):
        told = {handle: wait for handle, wait in told.items() if handle in view.waiting}
        told |= {wait.handle: wait for wait in answer if isinstance(wait, Wait)}
        refused = refused_one_by_one(before, view)
        standing = [x for x, wait in told.items() if wait.until is None or wait.until > view.now]
        assert refused <= set(standing)
        assert {x.handle for x in answer if isinstance(x, Wait)} <= refused


def refused_one_by_one(policy: Any, view: ClusterView) -> set[int]:
    """The jobs that find enough GPUs at their turn and get none, if all come forward."""
    seen = []
    policy._possible = lambda free, gpus: free.total >= gpus
    policy._refusals = SimpleNamespace(
        entered=lambda *_: None, refused=lambda contest, now: seen.extend(contest.refused)
    )
    policy.decide(view)
    return {x.handle for x in seen}
