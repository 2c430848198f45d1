"""Waiting jobs by what they need, so that few of a long queue come forward one by one.

Jobs that need the same find the same GPUs. So once one of them has to wait, so do all others that
are not expected to leave earlier, for the same reason, until a job starts.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from artist.cluster.host_resources import Need, need
from artist.cluster.placement import Placement
from artist.contract import JobView, Wait
from artist.policies.shared.ranking import Rank
from artist.units import Tick
from artist.workload.job import Job

Needs: TypeAlias = "tuple[int, int, Need]"
"""What jobs have in common that find the same GPUs: demand, tensor group, and what these need."""

Told: TypeAlias = "int | str | None"
"""Why a job waits: for the reservation of this handle, a resource of machines, or (None) GPUs
closer together."""

_NOTHING = -1
"""What a job was told that has just entered the queue."""


class SameNeeds:
    """Waiting jobs that need the same, in rank order. Its lists have an item for each."""

    __slots__ = ("entries", "needs", "shortest", "told")

    def __init__(self, needs: Needs) -> None:
        self.needs = needs
        self.entries: list[tuple[Rank, int]] = []
        """Rank and handle."""
        self.told: list[Told] = []
        self.shortest: list[Tick] = []
        """A lower bound of the time for which the job would hold GPUs; 0 before it is timed."""


class Outlook:
    """What jobs that need the same find until a job starts: a placement, or None.

    `first` of them is the index of the first one that finds it.
    """

    __slots__ = ("first", "placement", "time", "wait", "why")

    def __init__(self, placement: Placement | None, first: int) -> None:
        self.placement, self.first = placement, first
        self.why: Told = _NOTHING
        self.wait: Wait | None = None
        """Why they wait, if there is a reason; only those may start that leave within `time`."""
        self.time: Tick = 0

    def next_to_start(self, alike: SameNeeds, index: int) -> int:
        """The index of the first job from `index` on that may start."""
        shortest, time, end = alike.shortest, self.time, len(alike.shortest)
        if self.wait is None:
            return index
        if self.placement is None:
            return end
        while index < end and shortest[index] > time:
            index += 1
        return index


class WaitingJobs:
    """The waiting jobs of one policy."""

    def __init__(self) -> None:
        self._alike: dict[Needs, SameNeeds] = {}
        self._ranks: dict[int, Rank] = {}
        self._views: dict[int, JobView] = {}

    def add(self, job: JobView, rank: Rank) -> None:
        """Add a job that entered the queue."""
        self._ranks[job.handle], self._views[job.handle] = rank, job
        needs = _needs(job.job)
        alike = self._alike.get(needs)
        if alike is None:
            alike = self._alike[needs] = SameNeeds(needs)
        index = bisect_left(alike.entries, (rank, job.handle))
        alike.entries.insert(index, (rank, job.handle))
        alike.told.insert(index, _NOTHING)
        alike.shortest.insert(index, 0)

    def remove(self, handle: int) -> None:
        """Remove a job that left the queue."""
        alike = self._alike[_needs(self._views.pop(handle).job)]
        index = bisect_left(alike.entries, (self._ranks.pop(handle), handle))
        del alike.entries[index], alike.told[index], alike.shortest[index]
        if not alike.entries:
            del self._alike[alike.needs]

    def any_within(self, gpus: int) -> bool:
        """Whether a job has a demand of at most `gpus`."""
        return any(demand <= gpus for demand, _, _ in self._alike)

    def walk(
        self, possible: Callable[[int], bool], outlooks: Mapping[SameNeeds, Outlook]
    ) -> Iterator[tuple[SameNeeds, int, JobView]]:
        """Jobs in rank order, without those that cannot start; each with its index among its like.

        Demands are dropped as in `RankedQueue.walk`. `outlooks` say which jobs cannot start. The
        caller clears them when a job starts: then all jobs behind that one may come.
        """
        passed = False
        heads = self._heads(None, possible)
        while heads:
            rank, handle, alike, index = heads[0]
            if not possible(alike.needs[0]):
                heapq.heappop(heads)
                continue
            yield alike, index, self._views[handle]
            outlook = outlooks.get(alike)
            if outlook is None and passed:
                heads, passed = self._heads((rank, handle), possible), False
                continue
            index += 1
            if outlook is not None:
                coming = outlook.next_to_start(alike, index)
                passed = passed or coming > index
                index = coming
            if index < len(alike.entries):
                heapq.heapreplace(heads, (*alike.entries[index], alike, index))
            else:
                heapq.heappop(heads)

    def told(self, outlooks: Mapping[SameNeeds, Outlook], before: int | None = None) -> list[Wait]:
        """Why jobs wait, except those that were told so already; all, or those before a job."""
        waits = []
        end = None if before is None else (self._ranks[before], before)
        for alike, outlook in outlooks.items():
            why, wait, told = outlook.why, outlook.wait, alike.told
            if wait is not None:
                last = len(told) if end is None else bisect_left(alike.entries, end)
                for index in range(outlook.first, last):
                    if told[index] != why:
                        told[index] = why
                        handle = alike.entries[index][1]
                        waits.append(Wait(handle, wait.reason, wait.cause))
        return waits

    def _heads(
        self, after: tuple[Rank, int] | None, possible: Callable[[int], bool]
    ) -> list[tuple[Rank, int, SameNeeds, int]]:
        """A heap of the first job of all that need the same, or the first one after a job."""
        heads = []
        for alike in self._alike.values():
            index = 0 if after is None else bisect_right(alike.entries, after)
            if index < len(alike.entries) and possible(alike.needs[0]):
                heads.append((*alike.entries[index], alike, index))
        heapq.heapify(heads)
        return heads


def _needs(job: Job) -> Needs:
    return job.demand, job.tensor, need(job)
