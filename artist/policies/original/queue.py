"""The original simulator's queue: waiting jobs bid, an offer serves them by greedy backfill."""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement
from artist.policies.original.hash_order import HashOrder
from artist.policies.original.placement import fits, place
from artist.policies.original.rules import OriginalRule

Group: TypeAlias = "tuple[int, bool]"
"""GPU demand and kind (`OriginalRule.kind`)."""


@dataclass(frozen=True, slots=True)
class Bid:
    """A waiting job. `measure` is its priority; `since_s` is when it entered the queue."""

    handle: int
    gpus: int
    kind: bool
    measure: float
    since_s: float

    @property
    def rank(self) -> tuple[float, float, int]:
        """Sorting key: the smallest measure first, then the longest wait, then arrival."""
        return (self.measure, self.since_s, self.handle)


class Grant(NamedTuple):
    """What a bid gets."""

    bid: Bid
    level: int
    """The level at which a unit was looked for. The GPUs may lie closer together by chance."""
    placement: Placement


class BidQueue:
    """Waiting jobs in groups of one demand and kind.

    A group is sorted twice: by rank, and by the time at which the jobs entered the queue.
    """

    def __init__(self) -> None:
        self._bids: dict[int, Bid] = {}
        self._ranked: dict[Group, list[tuple[float, float, int]]] = {}
        self._since: dict[Group, list[float]] = {}

    def __len__(self) -> int:
        return len(self._bids)

    def __getitem__(self, handle: int) -> Bid:
        return self._bids[handle]

    def __contains__(self, handle: int) -> bool:
        return handle in self._bids

    def add(self, bid: Bid) -> None:
        """A job entered the queue."""
        self._bids[bid.handle] = bid
        insort(self._ranked.setdefault((bid.gpus, bid.kind), []), bid.rank)
        insort(self._since.setdefault((bid.gpus, bid.kind), []), bid.since_s)

    def remove(self, handle: int) -> None:
        """A job left the queue. Do not call it during a round."""
        bid = self._bids.pop(handle)
        group = (bid.gpus, bid.kind)
        ranked, since = self._ranked[group], self._since[group]
        del ranked[bisect_left(ranked, bid.rank)]
        del since[bisect_left(since, bid.since_s)]
        if not ranked:
            del self._ranked[group], self._since[group]

    def round(
        self, free: FreeGpus, rule: OriginalRule, visits: HashOrder, now_s: float
    ) -> Iterator[Grant]:
        """Greedy backfill: the grants of one offer, best rank first.

        A bid that does not fit is passed. The caller must claim the GPUs of a grant from `free`
        before it asks for the next one.
        """
        # One entry per group: its first bid that was not visited yet.
        heads = [(ranked[0], group, 0) for group, ranked in self._ranked.items()]
        heapq.heapify(heads)
        while heads:
            rank, group, index = heads[0]
            gpus, kind = group
            # If the longest wait of the group opens no level with room, no other bid of it can.
            longest_s = now_s - self._since[group][0]
            if not fits(free, rule.levels(free, gpus, kind, longest_s), gpus):
                heapq.heappop(heads)
                continue
            ranked = self._ranked[group]
            if index + 1 < len(ranked):
                heapq.heapreplace(heads, (ranked[index + 1], group, index + 1))
            else:
                heapq.heappop(heads)
            waited_s = now_s - rank[1]
            placed = place(free, rule.levels(free, gpus, kind, waited_s), gpus, visits)
            if placed is not None:
                yield Grant(self._bids[rank[2]], *placed)
