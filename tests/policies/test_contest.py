"""Laws of a contest: GPUs are given once, and nobody loses theirs while others would do."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st
from strategies import trees

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement, tier
from artist.cluster.tree import ClusterTree
from artist.contract import JobView, Migrate, Preempt, Start
from artist.engine.job_state import JobState
from artist.policies.shared.contest import Contest
from artist.policies.shared.placers import placer
from artist.workload.job import Job


class Round(NamedTuple):
    free: FreeGpus
    contestable: list[JobState]
    coming: list[JobState]
    """Contestable and waiting jobs in the order in which they come forward."""


def waiting(handle: int, gpus: int) -> JobState:
    return JobState(Job(f"job-{handle}", 0.0, gpus, "any", 1, 1.0), handle, 0)


def running(handle: int, placement: Placement, tree: ClusterTree) -> JobState:
    state = waiting(handle, placement.gpus)
    state.place(placement, tier(tree, placement), 0, 0)
    return state


@st.composite
def rounds(draw: st.DrawFn, largest: int = 12, most: int = 5) -> Round:
    tree = draw(trees())
    free = FreeGpus(tree)
    contestable = []
    for handle in range(draw(st.integers(0, 5))):
        room = {leaf: count for leaf, count in enumerate(free.leaves) if count}
        leaves = draw(st.sets(st.sampled_from(sorted(room)), max_size=3)) if room else set()
        if not leaves:
            continue
        placement = Placement.of({leaf: draw(st.integers(1, room[leaf])) for leaf in leaves})
        free.claim(placement)
        if draw(st.integers(0, 3)):  # the others run on, out of reach
            contestable.append(running(handle, placement, tree))
    sizes = draw(st.lists(st.integers(1, largest), max_size=most))
    queued = [waiting(10 + index, gpus) for index, gpus in enumerate(sizes)]
    return Round(free, contestable, draw(st.permutations(contestable + queued)))


def place(view: JobView, free: FreeGpus) -> Placement | None:
    return placer("pack").place(free, view.job.gpus)


def per_leaf(placements: list[Placement]) -> Counter[int]:
    counts: Counter[int] = Counter()
    for placement in placements:
        counts.update(dict(zip(placement.leaves, placement.counts, strict=True)))
    return counts


@given(rounds(), st.booleans())
def test_what_nobody_holds_is_what_is_left_beyond_those_yet_to_come(
    situation: Round, spare_first: bool
) -> None:
    free, contestable, coming = situation
    before = list(free.leaves)
    contest = Contest(free, contestable, place, spare_first=spare_first)
    all_gpus = per_leaf([view.placement for view in contestable if view.placement])
    given_away: list[Placement] = []
    to_come = list(contestable)
    for view in coming:
        decided = len(contest.decisions)
        served = contest.offer(view)
        if view in to_come:
            to_come.remove(view)
        if len(contest.decisions) == decided:
            given_away += [view.placement] if served and view.placement else []
        else:
            (decision,) = contest.decisions[decided:]
            assert served == isinstance(decision, (Start, Migrate))
            given_away += [decision.placement] if isinstance(decision, (Start, Migrate)) else []
        taken = per_leaf(given_away)
        held = per_leaf([view.placement for view in to_come if view.placement])
        for leaf, count in enumerate(before):
            left = count + all_gpus[leaf] - taken[leaf]
            assert contest.pool.leaves[leaf] == left
            assert contest.spare.leaves[leaf] == max(0, left - held[leaf])
    assert list(free.leaves) == before


@given(rounds(largest=1, most=20), st.booleans())
def test_no_job_loses_its_gpus_to_single_gpu_jobs_for_whom_others_are_left(
    situation: Round, spare_first: bool
) -> None:
    free, contestable, coming = situation
    contest = Contest(free, contestable, place, spare_first=spare_first)
    queued = [view for view in coming if view.placement is None]
    for view in [*queued[: free.total], *contestable]:
        assert contest.offer(view)
    assert not [found for found in contest.decisions if isinstance(found, (Preempt, Migrate))]
