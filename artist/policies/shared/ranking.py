"""Jobs in rank order: a queue that is cheap to walk, and running jobs from the back.

A *rank* is a tuple of exact numbers (`ratios.py`); the smaller rank comes first. Jobs of equal rank
come in order of arrival, which is the order of their handles. `RankedQueue` groups waiting jobs by
demand (`Job.demand`) and sorts each group by rank. So a walk drops a whole group as soon as its
demand cannot be met.

`ORDERS` holds the orders in which jobs may come forward: the job with the smallest key is first.
Keys are compared without rounding: 3 iterations of 0.1 s are as long as 1 iteration of 0.3 s.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Literal, TypeAlias

from artist.contract import JobView
from artist.policies.shared.ratios import ZERO, ExactKey, Ratio, exact_key
from artist.units import Tick, exact_ticks

Rank: TypeAlias = "tuple[int | float | Ratio, ...]"
"""Smaller comes first. A rank may not change while its job waits."""


class RankedQueue:
    """The waiting jobs of one policy, by demand and rank."""

    __slots__ = ("_groups", "_ranks", "_views")

    def __init__(self) -> None:
        self._groups: dict[int, list[tuple[Rank, int]]] = {}
        self._ranks: dict[int, Rank] = {}
        self._views: dict[int, JobView] = {}

    def __len__(self) -> int:
        return len(self._ranks)

    def add(self, job: JobView, rank: Rank) -> None:
        """Add a job that entered the queue."""
        self._ranks[job.handle] = rank
        self._views[job.handle] = job
        insort(self._groups.setdefault(job.job.demand, []), (rank, job.handle))

    def remove(self, handle: int) -> None:
        """Remove a job that left the queue."""
        rank = self._ranks.pop(handle)
        gpus = self._views.pop(handle).job.demand
        group = self._groups[gpus]
        del group[bisect_left(group, (rank, handle))]
        if not group:
            del self._groups[gpus]

    def rank_again(self, ranks: Mapping[int, Rank]) -> None:
        """Give jobs of the queue, by handle, other ranks."""
        self._ranks.update(ranks)
        for gpus in {self._views[handle].job.demand for handle in ranks}:
            self._groups[gpus] = sorted((self._ranks[x], x) for _, x in self._groups[gpus])

    @property
    def demands(self) -> Collection[int]:
        """The different demands of the jobs in the queue."""
        return self._groups.keys()

    def first_of(self, gpus: int) -> tuple[Rank, int]:
        """Rank and handle of the first job with this demand."""
        return self._groups[gpus][0]

    def entry(self, handle: int) -> tuple[Rank, int] | None:
        """Rank and handle of a job; None if it is not in the queue."""
        rank = self._ranks.get(handle)
        return None if rank is None else (rank, handle)

    def holds(self, entry: tuple[Rank, int]) -> bool:
        """Whether a job is in the queue with this rank."""
        return self._ranks.get(entry[1]) == entry[0]

    def job(self, handle: int) -> JobView:
        """A job of the queue."""
        return self._views[handle]

    def first(self, gpus: int) -> tuple[Rank, int] | None:
        """Rank and handle of the first job with a demand of at most `gpus`; None without any."""
        first = None
        for demand, jobs in self._groups.items():
            if demand <= gpus and (first is None or jobs[0] < first):
                first = jobs[0]
        return first

    def walk(self, possible: Callable[[int], bool]) -> Iterator[tuple[Rank, JobView]]:
        """Jobs with their ranks, in rank order, without demands that cannot be met.

        `possible(gpus)` says whether a job with this demand may get GPUs. Once it is False for a
        demand, it must stay False: free GPUs only shrink during a walk. Jobs must not be added or
        removed before the walk is over.
        """
        # One entry per group: its first job that has not been visited.
        heads = [(*group[0], gpus, 0) for gpus, group in self._groups.items() if possible(gpus)]
        heapq.heapify(heads)
        while heads:
            rank, handle, gpus, index = heads[0]
            if not possible(gpus):
                heapq.heappop(heads)
                continue
            group = self._groups[gpus]
            if index + 1 < len(group):
                heapq.heapreplace(heads, (*group[index + 1], gpus, index + 1))
            else:
                heapq.heappop(heads)
            yield rank, self._views[handle]


def by_rank(pair: tuple[Rank, JobView]) -> tuple[Rank, int]:
    """Sorting key of a job with its rank: the rank, then the handle."""
    rank, job = pair
    return rank, job.handle


def gpus_held(jobs: Iterable[JobView]) -> int:
    """The number of GPUs that these jobs hold together."""
    held = 0
    for job in jobs:
        held += job.gpus
    return held


def behind(
    first: tuple[Rank, int] | None, jobs: Iterable[JobView], rank: Callable[[JobView], Rank]
) -> list[tuple[Rank, JobView]]:
    """The jobs that come after `first` (rank and handle), with their ranks; none if it is None."""
    if first is None:
        return []
    ranked = [(rank(job), job) for job in jobs]
    return [(value, job) for value, job in ranked if first < (value, job.handle)]


class LastRanked:
    """Running jobs from the back of the rank order, for ranks that only fall while a job runs.

    Remaining time is such a rank. Any earlier rank of a job is then an upper bound of its present
    rank. So `behind` computes ranks only for jobs whose bound is behind the given entry.
    """

    __slots__ = ("_bounds", "_heap")

    def __init__(self) -> None:
        # Bounds are negated, because `heapq` pops the smallest entry and the largest bound is
        # first.
        self._heap: list[tuple[Rank, int]] = []
        self._bounds: dict[int, Rank] = {}

    def add(self, handle: int, rank: Rank) -> None:
        """Add a job that started. A bound from an earlier stay still holds."""
        if handle not in self._bounds:
            self._put(handle, rank)

    def forget(self, handle: int) -> None:
        """Forget a job that finished, or lost its GPUs: a failure may have raised its rank."""
        # Its heap entry stays until more than half of the entries are stale. Then all stale ones
        # are dropped at once, so that they do not pile up in a long run.
        if self._bounds.pop(handle, None) is not None and len(self._heap) > 2 * len(self._bounds):
            self._heap = [entry for entry in self._heap if entry[1] in self._bounds]
            heapq.heapify(self._heap)

    def behind(
        self,
        first: tuple[Rank, int],
        running: Mapping[int, JobView],
        rank: Callable[[JobView], Rank],
    ) -> list[tuple[Rank, JobView]]:
        """The running jobs that come after `first` (rank and handle), with their ranks."""
        candidates = []
        limit = tuple(-value for value in first[0])
        while self._heap and self._heap[0][0] <= limit:
            _, handle = heapq.heappop(self._heap)
            if self._bounds.pop(handle, None) is not None and handle in running:
                candidates.append((rank(running[handle]), running[handle]))
        for value, job in candidates:
            self._put(job.handle, value)
        return [(value, job) for value, job in candidates if first < (value, job.handle)]

    def _put(self, handle: int, rank: Rank) -> None:
        self._bounds[handle] = rank
        heapq.heappush(self._heap, (tuple(-value for value in rank), handle))


def sensitivity(job: JobView, now: Tick, never_ran: ExactKey = ZERO) -> ExactKey:
    """Dally's network-sensitive priority (Dally, section IV-B1), smallest for jobs slowed most.

        Nw_sens = W_compl / T_norm = (I_compl / I_total) / (T_run / T_total-ideal-run)
                = I_compl x compute time of an iteration / T_run

    It is an exact sorting key, so that rounding never separates equal jobs. For a job that never
    ran, where the paper has 0 / 0, it is `never_ran`.
    """
    run = job.run_ticks(now)
    if not run:
        return never_ran
    num, den = exact_ticks(job.job.compute_s)
    return exact_key(job.iterations_done(now) * num, run * den)


OrderName: TypeAlias = Literal["arrival", "length", "remaining", "area", "service", "sensitivity"]


def _by_arrival(job: JobView, now: Tick) -> Rank:
    return ()


def _by_length(job: JobView, now: Tick) -> Rank:
    num, den = exact_ticks(job.job.compute_s)
    return exact_key(job.job.iterations * num, den)


def _by_remaining(job: JobView, now: Tick) -> Rank:
    num, den = exact_ticks(job.job.compute_s)
    return exact_key(_left(job, now) * num, den)


def _by_area(job: JobView, now: Tick) -> Rank:
    num, den = exact_ticks(job.job.compute_s)
    return exact_key(_left(job, now) * num * job.job.gpus, den)


def _left(job: JobView, now: Tick) -> int:
    """The number of iterations that the job has not done."""
    return job.job.iterations - job.iterations_done(now)


def _by_service(job: JobView, now: Tick) -> Rank:
    return (job.service_gpu_ticks(now),)


def _by_sensitivity(job: JobView, now: Tick) -> Rank:
    return *sensitivity(job, now), job.entered


ORDERS: Mapping[OrderName, Callable[[JobView, Tick], Rank]] = {
    "arrival": _by_arrival,
    "length": _by_length,
    "remaining": _by_remaining,
    "area": _by_area,
    "service": _by_service,
    "sensitivity": _by_sensitivity,
}
"""Orders by name, as functions from a job and the present tick to its key."""
