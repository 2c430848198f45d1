"""Copies and reads between regions share the regions' links: max-min fair.

Each region has one link to the backbone, in both directions (`artist/cluster/cluster_links.py`).
A flow uses the link out of each region that it reads from, and the link into its own. Max-min
fairness is what connections of one kind get of links that they share, and needs no order of
service: the rates of all flows rise together until a link is full or a flow has what it wants.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from artist.units import TICKS_PER_S, Tick

Link: TypeAlias = "tuple[int, bool]"
"""A region, and whether the link leads into it."""


@dataclass(frozen=True, slots=True)
class Flow:
    """What shares links: the part of its rate on each of them, and the rate that it wants."""

    parts: Mapping[Link, Fraction]
    wants: Fraction | None = None
    """Bytes per second; None for all that it can get."""


def max_min(flows: Sequence[Flow], capacity: Fraction) -> list[Fraction]:
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
    """The job for which it was made."""
    start: Tick
    left: Fraction
    """Bytes."""
    rate: Fraction = Fraction(0)
    """Bytes per second."""
    end: Tick | None = None
    """When it is all there; None before."""

    @property
    def flow(self) -> Flow:
        """The copy on its two links."""
        one = Fraction(1)
        return Flow({(self.source, False): one, (self.target, True): one})


class Copies:
    """The copies under way, at rates that change whenever one of them begins or ends."""

    def __init__(self, capacity: Fraction) -> None:
        """`capacity` of a region's link each way, bytes per second."""
        self._capacity = capacity
        self._now: Tick = 0
        self.under_way: list[Copy] = []
        self.done: list[Copy] = []

    def begin(self, copies: Iterable[Copy]) -> None:
        """Copies set out now, the last tick of `advance`."""
        self.under_way += copies
        self._share()

    def next_end(self) -> Tick | None:
        """When the next of those under way will be there; None if there are none."""
        return min((self._end(copy) for copy in self.under_way), default=None)

    def advance(self, now: Tick) -> list[Copy]:
        """Go on to a tick; the copies that are there by then, in the order of their ends."""
        arrived: list[Copy] = []
        while (end := self.next_end()) is not None and end <= now:
            self._settle(end)
            for copy in self.under_way:
                if copy.left <= 0:
                    copy.end = end
                    arrived.append(copy)
            self.under_way = [copy for copy in self.under_way if copy.end is None]
            self._share()
        self._settle(now)
        self.done += arrived
        return arrived

    def _end(self, copy: Copy) -> Tick:
        """The first whole tick at which nothing is left."""
        return self._now - (-copy.left * TICKS_PER_S // copy.rate)

    def _settle(self, now: Tick) -> None:
        for copy in self.under_way:
            copy.left -= copy.rate * (now - self._now) / TICKS_PER_S
        self._now = now

    def _share(self) -> None:
        rates = max_min([copy.flow for copy in self.under_way], self._capacity)
        for copy, rate in zip(self.under_way, rates, strict=True):
            copy.rate = rate
