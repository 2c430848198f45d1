"""Waiting jobs by class, place and size, so that one look tells which of them cannot start.

This is the negative cache of section 4.3 in another form: if a job does not fit in a place, no job
of the same class and at least its size does.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from typing import NamedTuple

from artist.policies.quota.ledger import LAST_CLASS


class Where(NamedTuple):
    """Where a job may go: regions, or the one cluster in them to which it is bound.

    With `kinds`, only clusters with GPUs of one of these kinds.
    """

    regions: tuple[int, ...]
    cluster: int = -1
    kinds: tuple[str, ...] = ()


Group = list[tuple[float, int]]
"""(minus credit, handle) of jobs of one class, place and size, in order."""


class WaitingQueue:
    """Waiting jobs of all regions."""

    def __init__(self) -> None:
        self.groups: list[dict[Where, dict[int, Group]]] = [{} for _ in range(LAST_CLASS + 1)]
        self._keys: dict[int, tuple[int, Where, int, float]] = {}

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, handle: int, rank: int, where: Where, gpus: int, credit: float) -> None:
        """Add a waiting job."""
        self._keys[handle] = (rank, where, gpus, credit)
        group = self.groups[rank].setdefault(where, {}).setdefault(gpus, [])
        insort(group, (-credit, handle))

    def remove(self, handle: int) -> None:
        """Remove a job, which no longer waits."""
        rank, where, gpus, credit = self._keys.pop(handle)
        places = self.groups[rank]
        sizes = places[where]
        group = sizes[gpus]
        del group[bisect_left(group, (-credit, handle))]
        if not group:
            del sizes[gpus]
            if not sizes:
                del places[where]

    def rebuild(self, jobs: Iterable[tuple[int, int, Where, int, float]]) -> None:
        """Replace all jobs by these (handle, class, place, GPUs, credit), most credit first."""
        self.__init__()  # type: ignore[misc]  # the same two empty structures
        groups, keys = self.groups, self._keys
        for handle, rank, where, gpus, credit in jobs:
            keys[handle] = (rank, where, gpus, credit)
            sizes = groups[rank].setdefault(where, {})
            group = sizes.get(gpus)
            if group is None:
                group = sizes[gpus] = []
            group.append((-credit, handle))

    def refusals(self) -> int:
        """How many (class, place) have waiting jobs: one look can refuse all jobs of each."""
        return sum(map(len, self.groups))
