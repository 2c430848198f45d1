"""Waiting jobs above quota, found without looking at each of them.

They are grouped by what the host knows of them, by mates, and by number and kinds of GPUs. Jobs of
a group differ only in credit and arrival. So a question looks only at the first job of each group,
and at the jobs that are served.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator

from artist.policies.quota.ledger import LedgerEntry, Mates

HIDDEN, SEEN, SPARE = 0, 1, 2
"""What the host knows of a waiting job: nothing; that it waits; that it may take spare GPUs."""

Demand = tuple[int, tuple[str, ...]]
"""GPUs, and the kinds of them that a job accepts."""


class Alike:
    """Mates that want the same number of GPUs of the same kinds, in the order of credit."""

    __slots__ = ("accepts", "fresh", "gpus", "jobs", "mates", "words")

    def __init__(self, mates: Mates, demand: Demand) -> None:
        self.mates = mates
        self.gpus, self.accepts = demand
        self.jobs: list[tuple[float, int]] = []
        """(Minus credit, handle)."""
        self.words = ""
        """Why the jobs wait, as told last. `fresh` jobs, which came since then, were not told."""
        self.fresh: set[int] = set()


class JobsAbove:
    """Waiting jobs above quota."""

    __slots__ = ("_group_of", "_groups")

    def __init__(self) -> None:
        self._groups: tuple[dict[Mates, dict[Demand, Alike]], ...] = ({}, {}, {})
        self._group_of: dict[int, Alike] = {}

    def __contains__(self, handle: int) -> bool:
        return handle in self._group_of

    def add(self, handle: int, entry: LedgerEntry) -> None:
        """Add a job that waits above quota."""
        alike = self._group_of[handle] = self._alike(entry)
        insort(alike.jobs, (-entry.credit, handle))
        alike.fresh.add(handle)

    def remove(self, handle: int, entry: LedgerEntry) -> None:
        """Remove a job, which no longer waits above quota or is about to change its group."""
        alike = self._group_of.pop(handle)
        del alike.jobs[bisect_left(alike.jobs, (-entry.credit, handle))]
        alike.fresh.discard(handle)
        if not alike.jobs:
            groups = self._groups[entry.place]
            demands = groups[entry.mates]
            del demands[entry.demand]
            if not demands:
                del groups[entry.mates]

    def sort(self, entries: Iterable[tuple[float, int, LedgerEntry]]) -> None:
        """Regroup all waiting jobs after a pass; they are given in the order of credit."""
        before, self._group_of = self._group_of, {}
        for groups in self._groups:
            for demands in groups.values():
                for alike in demands.values():
                    alike.jobs.clear()
        for minus_credit, handle, entry in entries:
            if not entry.within:
                group = before.get(handle)
                if group is None:
                    group = self._alike(entry)
                    group.fresh.add(handle)
                self._group_of[handle] = group
                group.jobs.append((minus_credit, handle))
            elif handle in before:
                before[handle].fresh.discard(handle)
        for groups in self._groups:
            for mates in list(groups):
                demands = groups[mates]
                for demand in [x for x in demands if not demands[x].jobs]:
                    del demands[demand]
                if not demands:
                    del groups[mates]

    def groups(self, place: int) -> dict[Mates, dict[Demand, Alike]]:
        """By mates and demand, the jobs of which the host knows this much (`HIDDEN` ...)."""
        return self._groups[place]

    def has_mates(self, mates: Mates) -> bool:
        """Whether any of these mates waits above quota."""
        return any(mates in groups for groups in self._groups)

    def walk(self, places: Iterable[int], dropped: Callable[[Alike], bool]) -> Iterator[int]:
        """Jobs in the order of credit, without those of dropped groups.

        A group that is dropped once stays dropped. No job may be added or removed during the walk.
        """
        alike = [
            x
            for place in places
            for demands in self._groups[place].values()
            for x in demands.values()
            if not dropped(x)
        ]
        # One entry per group: its first job that has not been visited yet.
        heads = [(*x.jobs[0], number, 0) for number, x in enumerate(alike)]
        heapq.heapify(heads)
        while heads:
            _, handle, number, index = heads[0]
            group = alike[number]
            if dropped(group):
                heapq.heappop(heads)
                continue
            if index + 1 < len(group.jobs):
                heapq.heapreplace(heads, (*group.jobs[index + 1], number, index + 1))
            else:
                heapq.heappop(heads)
            yield handle

    def _alike(self, entry: LedgerEntry) -> Alike:
        demands = self._groups[entry.place].setdefault(entry.mates, {})
        alike = demands.get(entry.demand)
        if alike is None:
            alike = demands[entry.demand] = Alike(entry.mates, entry.demand)
        return alike
