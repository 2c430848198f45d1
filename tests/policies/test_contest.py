"""Is a GPU given once in a contest, and does a job keep its GPUs while free ones suffice?"""

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
    """Contestable and waiting jobs, in the order in which they come forward."""


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
        if draw(st.integers(0, 3)):  # the other jobs run on and are not contestable
            contestable.append(running(handle, placement, tree))
    sizes = draw(st.lists(st.integers(1, largest), max_size=most))
    queued = [waiting(10 + index, gpus) for index, gpus in enumerate(sizes)]
    return Round(free, contestable, draw(st.permutations(contestable + queued)))


def place(job: JobView, free: FreeGpus) -> Placement | None:
    return placer("pack").place(free, job.job.gpus)


def per_leaf(placements: list[Placement]) -> Counter[int]:
    counts: Counter[int] = Counter()
    for placement in placements:
        counts.update(dict(zip(placement.leaves, placement.counts, strict=True)))
    return counts


@given(rounds(), st.booleans())
def test_free_gpus_are_those_of_the_pool_beyond_those_of_jobs_yet_to_come(
    situation: Round, free_first: bool
) -> None:
    free, contestable, coming = situation
    before = list(free.leaves)
    contest = Contest(free, contestable, place, free_first=free_first)
    all_gpus = per_leaf([job.placement for job in contestable if job.placement])
    given_away: list[Placement] = []
    to_come = list(contestable)
    for job in coming:
        decided = len(contest.decisions)
        served = contest.offer((), job)
        total = contest.free_total  # before anything else is read, which settles the last claim
        if job in to_come:
            to_come.remove(job)
        if len(contest.decisions) == decided:
            given_away += [job.placement] if served and job.placement else []
        else:
            (decision,) = contest.decisions[decided:]
            assert served == isinstance(decision, (Start, Migrate))
            given_away += [decision.placement] if isinstance(decision, (Start, Migrate)) else []
        taken = per_leaf(given_away)
        held = per_leaf([job.placement for job in to_come if job.placement])
        for leaf, count in enumerate(before):
            left = count + all_gpus[leaf] - taken[leaf]
            assert contest.pool.leaves[leaf] == left
            assert contest.free.leaves[leaf] == max(0, left - held[leaf])
        assert total == sum(contest.free.leaves) == contest.free_total
    assert list(free.leaves) == before


@given(rounds(largest=1, most=20), st.booleans())
def test_no_job_loses_its_gpus_to_single_gpu_jobs_while_free_gpus_are_left(
    situation: Round, free_first: bool
) -> None:
    free, contestable, coming = situation
    contest = Contest(free, contestable, place, free_first=free_first)
    queued = [job for job in coming if job.placement is None]
    for job in [*queued[: free.total], *contestable]:
        assert contest.offer((), job)
    assert not [one for one in contest.decisions if isinstance(one, (Preempt, Migrate))]
