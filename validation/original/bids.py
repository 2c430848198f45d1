"""The original simulator's queue: waiting jobs bid, an offer serves them by greedy backfill.

`OriginalRule` is the part in which its schedulers differ: the order of the jobs, and the levels
that they accept. `place` is how it places a gang: innermost level first, first fit, not packed.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, Protocol, TypeAlias

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement
from artist.cluster.tree import ClusterTree
from validation.original.accounts import Account
from validation.original.hash_order import HashOrder

Group: TypeAlias = "tuple[int, bool]"
"""GPU demand and kind (`OriginalRule.kind`)."""


class OriginalRule(Protocol):
    """The part in which the schedulers differ. Times are seconds, timers are leases."""

    def kind(self, model: str) -> bool:
        """Whether a model must be consolidated, if that makes a difference.

        Jobs of one demand and kind that have waited equally long accept the same levels.
        """
        ...

    def measure(self, account: Account) -> float:
        """The priority. The job with the smallest measure comes first."""
        ...

    def levels(self, free: FreeGpus, gpus: int, kind: bool, waited_s: float) -> Sequence[int]:
        """The levels that a job accepts, innermost first. A longer wait never closes a level."""
        ...

    def granted(
        self, tree: ClusterTree, level: int, gpus: int, waited_s: float, now: float
    ) -> None:
        """A job got GPUs inside one unit of `level`, after a wait of `waited_s` seconds."""
        ...

    def tables(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """Extra result tables, as `Policy.tables`."""
        ...


@cache
def open_levels(
    first: int, machine: int, root: int, rack_open: bool, network_open: bool
) -> tuple[int, ...]:
    """Levels from `first` up to the machine, then racks and the network if they are open."""
    levels = (*range(first, machine + 1),)
    if rack_open:
        levels += (*range(machine + 1, root),)
    return (*levels, root) if network_open else levels


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


def fits(free: FreeGpus, levels: Iterable[int], gpus: int) -> bool:
    """Whether some unit of these levels has room."""
    # `FreeGpus.fits_one` knows no level inside machines. A machine with room is a good enough test.
    machine = free.tree.machine
    return gpus <= free.total and any(free.fits_one(max(level, machine), gpus) for level in levels)


def place(
    free: FreeGpus, levels: Iterable[int], gpus: int, visits: HashOrder
) -> tuple[int, Placement] | None:
    """A placement inside one unit, and that unit's level; None if no unit has room.

    The unit is the first one with room, in the first of these levels that has one. Machines and
    sockets are visited in the order of `visits`, racks in ascending order. The first free GPUs of
    the unit are taken. So a job in a rack may lie on many partly used machines.
    """
    machine = free.tree.machine
    for level in levels:
        if level <= machine:
            unit = visits.first_fit(free, level, gpus)
        else:
            unit = free.first_fit(level, gpus)
        if unit is not None:
            return level, first_gpus(free, level, unit, gpus)
    return None


def first_gpus(free: FreeGpus, level: int, unit: int, gpus: int) -> Placement:
    """The first free GPUs of a unit that has enough."""
    # The leaves of the unit are `first` to `last` - 1.
    first, last = unit, unit + 1
    for at in range(level, 0, -1):
        children = free.tree.levels[at].first_child
        first, last = children[first], children[last]
    counts = free.counts(0)[first:last]
    taken = {}
    for offset in counts.nonzero()[0].tolist():
        taken[first + offset] = min(gpus, int(counts[offset]))
        gpus -= taken[first + offset]
        if not gpus:
            break
    return Placement.of(taken)
