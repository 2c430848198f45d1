"""Copies and reads between regions share the regions' links: max-min fair.

Each region has one link to the backbone, in both directions (`artist/cluster/cluster_links.py`).
A flow uses the link out of each region that it reads from, and the link into its own region. Links
are shared max-min fairly: the rates of all flows rise together until a link is full or a flow has
what it wants.

The algorithm of `artist/network` does not fit. There a flow sends its whole rate on every link, but
a job that reads from several regions sends only a part of its rate on each link. Also, copies end
at whole ticks, so rates must be exact fractions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from heapq import heappop, heappush
from typing import TypeAlias

from artist.units import TICKS_PER_S, Tick

Link: TypeAlias = "tuple[int, bool]"
"""A region, and whether the link leads into it."""


@dataclass(frozen=True, slots=True)
class WideAreaFlow:
    """A flow between regions: the part of its rate on each link, and the rate that it wants."""

    parts: Mapping[Link, Fraction]
    wants: Fraction | None = None
    """Bytes per second; None for all that it can get."""


def max_min(flows: Sequence[WideAreaFlow], capacity: Fraction) -> list[Fraction]:
    """The rate of each flow, bytes per second, if every link carries `capacity` each way."""
    rates = [Fraction(0)] * len(flows)
    left = {link: capacity for flow in flows for link in flow.parts}
    rising = dict.fromkeys(range(len(flows)))
    while rising:
        load: dict[Link, Fraction] = {}
        for index in rising:
            for link, part in flows[index].parts.items():
                load[link] = load.get(link, Fraction(0)) + part
        wants = [
            (want - rates[index]) for index in rising if (want := flows[index].wants) is not None
        ]
        step = min([*(left[link] / part for link, part in load.items()), *wants])
        for index in rising:
            rates[index] += step
        full = set()
        for link, part in load.items():
            left[link] -= step * part
            if not left[link]:
                full.add(link)
        for index in [*rising]:
            if rates[index] == flows[index].wants or full & flows[index].parts.keys():
                del rising[index]
    return rates


@dataclass(slots=True)
class Copy:
    """Pieces of a table on their way from one region to another."""

    pieces: tuple[int, ...]
    size_bytes: int
    source: int
    target: int
    handle: int
    """The job for which the copy was made."""
    start: Tick
    end: Tick | None = None
    """When all of it arrived; None before."""


@dataclass(slots=True)
class _Pair:
    """The copies from one region to another, which all have the same rate.

    A copy ends when `served` reaches its value at the copy's start plus the copy's size."""

    source: int
    target: int
    served: Fraction = Fraction(0)
    """Bytes that a copy would have received if it had been under way from the beginning."""
    rate: Fraction = Fraction(0)
    """Bytes per second of each copy."""
    under_way: list[tuple[Fraction, int, Copy]] = field(default_factory=list)
    """A heap of (value of `served` at which the copy ends, number of the copy, copy)."""

    @property
    def flow(self) -> WideAreaFlow:
        """The flow of one copy. Each link carries its rate once for each copy of the pair."""
        count = Fraction(len(self.under_way))
        return WideAreaFlow({(self.source, False): count, (self.target, True): count})

    def end(self, now: Tick) -> Tick:
        """The first whole tick at which the next copy has arrived."""
        return now - (-(self.under_way[0][0] - self.served) * TICKS_PER_S // self.rate)


class Copies:
    """The copies under way, at rates that change whenever one of them begins or ends."""

    def __init__(self, capacity: Fraction) -> None:
        """`capacity` of a region's link each way, bytes per second."""
        self._capacity = capacity
        self._since: Tick = 0
        """When rates last changed."""
        self._pairs: dict[tuple[int, int], _Pair] = {}
        self._next: Tick | None = None
        self.made: list[Copy] = []
        """All copies, in the order in which they began."""

    def begin(self, copies: Iterable[Copy], now: Tick) -> None:
        """Begin copies. Call `advance` first, for copies that end by now."""
        self._settle(now)
        for copy in copies:
            pair = self._pairs.setdefault(
                (copy.source, copy.target), _Pair(copy.source, copy.target)
            )
            heappush(pair.under_way, (pair.served + copy.size_bytes, len(self.made), copy))
            self.made.append(copy)
        self._share()

    def next_end(self) -> Tick | None:
        """When the next copy under way will have arrived; None if there is none."""
        return self._next

    def sent_by(self, region: int) -> int:
        """How many copies a region is sending."""
        return sum(len(pair.under_way) for pair in self._pairs.values() if pair.source == region)

    def advance(self, now: Tick) -> list[Copy]:
        """Advance to a tick. Returns the copies that have arrived since, in order."""
        arrived: list[Copy] = []
        while self._next is not None and self._next <= now:
            end = self._next
            self._settle(end)
            for pair in self._pairs.values():
                while pair.under_way and pair.under_way[0][0] <= pair.served:
                    copy = heappop(pair.under_way)[2]
                    copy.end = end
                    arrived.append(copy)
            self._share()
        return arrived

    def _settle(self, now: Tick) -> None:
        for pair in self._pairs.values():
            pair.served += pair.rate * (now - self._since) / TICKS_PER_S
        self._since = now

    def _share(self) -> None:
        self._pairs = {key: pair for key, pair in self._pairs.items() if pair.under_way}
        pairs = list(self._pairs.values())
        rates = max_min([pair.flow for pair in pairs], self._capacity)
        for pair, rate in zip(pairs, rates, strict=True):
            pair.rate = rate
        self._next = min((pair.end(self._since) for pair in pairs), default=None)
