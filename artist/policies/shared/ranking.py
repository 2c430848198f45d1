"""Waiting jobs in priority order, cheap to walk when little is free.

Jobs are grouped by GPU demand and sorted by rank inside a group, so that a walk in
rank order drops a whole group as soon as its demand cannot be met.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

from artist.contract import JobView

Rank: TypeAlias = "tuple[float, ...]"
"""Smaller comes first. A rank may not change while its job waits."""


class RankedQueue:
    """Waiting jobs of one policy."""

    __slots__ = ("_groups", "_ranks", "_views")

    def __init__(self) -> None:
        self._groups: dict[int, list[tuple[Rank, int]]] = {}
        self._ranks: dict[int, Rank] = {}
        self._views: dict[int, JobView] = {}

    def __len__(self) -> int:
        return len(self._ranks)

    def add(self, view: JobView, rank: Rank) -> None:
        """A job entered the queue. Equal ranks are told apart by order of arrival."""
        self._ranks[view.handle] = rank
        self._views[view.handle] = view
        insort(self._groups.setdefault(view.job.gpus, []), (rank, view.handle))

    def remove(self, handle: int) -> None:
        """A job left the queue."""
        rank = self._ranks.pop(handle)
        gpus = self._views.pop(handle).job.gpus
        group = self._groups[gpus]
        del group[bisect_left(group, (rank, handle))]
        if not group:
            del self._groups[gpus]

    def first(self, gpus: int) -> tuple[Rank, int] | None:
        """Rank and order of the first job that wants at most so many GPUs."""
        found = None
        for demand, jobs in self._groups.items():
            if demand <= gpus and (found is None or jobs[0] < found):
                found = jobs[0]
        return found

    def walk(self, possible: Callable[[int], bool]) -> Iterator[tuple[Rank, JobView]]:
        """Jobs in rank order, without the groups whose demand is (or becomes) impossible.

        `possible(gpus)` must stay False once it was: free GPUs only shrink during a walk.
        Jobs must not be added or removed before the walk is over.
        """
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


def gpus_held(jobs: Iterable[JobView]) -> int:
    """How many GPUs some jobs hold together."""
    return sum([job.gpus for job in jobs])


def behind(
    first: tuple[Rank, int] | None, jobs: Iterable[JobView], rank: Callable[[JobView], Rank]
) -> list[tuple[Rank, JobView]]:
    """Those of the jobs that come after one with this rank and order, with their ranks."""
    if first is None:
        return []
    ranked = [(rank(job), job) for job in jobs]
    return [(found, job) for found, job in ranked if first < (found, job.handle)]


class LastRanked:
    """Running jobs from the back of the rank order, for ranks that only fall while a job runs.

    A rank that was true once bounds it from then on, so that only jobs whose bound lies behind
    the one who asks are looked at.
    """

    __slots__ = ("_bounds", "_heap")

    def __init__(self) -> None:
        self._heap: list[tuple[tuple[float, ...], int]] = []
        self._bounds: dict[int, Rank] = {}

    def add(self, handle: int, rank: Rank) -> None:
        """A job started; one that ran before is known already."""
        if handle not in self._bounds:
            self._put(handle, rank)

    def forget(self, handle: int) -> None:
        """A job finished."""
        if self._bounds.pop(handle, None) is not None and len(self._heap) > 2 * len(self._bounds):
            self._heap = [entry for entry in self._heap if entry[1] in self._bounds]
            heapq.heapify(self._heap)

    def behind(
        self,
        first: tuple[Rank, int],
        running: Mapping[int, JobView],
        rank: Callable[[JobView], Rank],
    ) -> list[tuple[Rank, JobView]]:
        """The running jobs that come after one with this rank and order, with their ranks."""
        looked_at = []
        limit = tuple(-value for value in first[0])
        while self._heap and self._heap[0][0] <= limit:
            _, handle = heapq.heappop(self._heap)
            if self._bounds.pop(handle, None) is not None and handle in running:
                looked_at.append((rank(running[handle]), running[handle]))
        for found, view in looked_at:
            self._put(view.handle, found)
        return [(found, view) for found, view in looked_at if first < (found, view.handle)]

    def _put(self, handle: int, rank: Rank) -> None:
        self._bounds[handle] = rank
        heapq.heappush(self._heap, (tuple(-value for value in rank), handle))
