"""Does every policy of the table keep the contract? Does the checker catch one that does not?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import pytest
from support import SELF_SUFFICIENT, longer_rounds

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement
from artist.contract import BasePolicy, ClusterView, Decision, JobView, Start
from artist.errors import PolicyError
from artist.policies.classic import Classic, ClassicOptions
from artist.policies.shared.placers import PackPlacer
from artist.run import open_policy
from artist.testing import check_policy
from artist.units import Tick


@pytest.mark.parametrize("name", SELF_SUFFICIENT)
def test_registered_policy_keeps_the_contract(name: str) -> None:
    check_policy(lambda: open_policy(name, longer_rounds(name)))


PREEMPTIONS = ("never", "lease", "at-once")


def combinations() -> Iterator[object]:
    """All of them. Each pair of two choices meets in those that are not slow."""
    orders = ("arrival", "length", "remaining", "area", "service")
    placements = ("any", "pack", "consolidate-or-wait", "least-contended")
    for (i, order), (j, placement) in product(enumerate(orders), enumerate(placements)):
        for preemption in PREEMPTIONS:
            marks = () if preemption == PREEMPTIONS[(i + j) % 3] else pytest.mark.slow
            yield pytest.param(order, placement, preemption, marks=marks)


@pytest.mark.parametrize(("order", "placement", "preemption"), list(combinations()))
def test_any_order_takes_any_placer_and_preemption(order, placement, preemption) -> None:
    options = ClassicOptions(order=order, placement=placement, preemption=preemption)
    check_policy(lambda: Classic(options))


class Lazy(BasePolicy):
    """Never starts anything."""

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        return ()


class Greedy(BasePolicy):
    """Gives the first GPU to every job."""

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        return [Start(handle, Placement((0,), (1,))) for handle in view.waiting]


class Meddler(Classic):
    """Claims GPUs in the view, which belongs to the engine."""

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        decisions = super().decide(view)
        for decision in decisions:
            if isinstance(decision, Start):
                view.free.claim(decision.placement)
        return decisions


class NameReader(BasePolicy):
    """Serves jobs in the order of their names."""

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        free, decisions = view.free.copy(), []
        for job in sorted(view.waiting.values(), key=lambda job: job.job.id):
            placement = PackPlacer().place(free, job.job.gpus)
            if placement is not None:
                free.claim(placement)
                decisions.append(Start(job.handle, placement))
        return decisions


class Blind(Classic):
    """Says that no lease is contested, although it would give GPUs to other jobs."""

    def contests(self, ended: Sequence[JobView], free: FreeGpus, now: Tick) -> bool:
        return False


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (Lazy, "waiting"),
        (Greedy, "placed on 1 GPU, but it runs on 4"),
        (NameReader, "insensitive to names"),
        (lambda: Meddler(ClassicOptions()), "free"),
        (
            lambda: Blind(ClassicOptions(order="service", preemption="lease")),
            "right about leases that no job contests",
        ),
    ],
)
def test_the_checker_catches_broken_policies(policy, words: str) -> None:
    with pytest.raises(PolicyError, match=words):
        check_policy(policy)
