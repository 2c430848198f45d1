"""Slow machines: a job on them is as fast as its slowest GPU, since its GPUs wait for each other.

    compute time = compute time at full speed / speed of the slowest unit

`SlowedRates` is a rate function around another one. Bytes and links stay the same, so backends are
asked with the longer compute times, and hide as much communication as these allow. Other jobs slow
its communication down by as much as if the job ran at full speed.

Policies and estimates do not know of slow machines: operators find them late (docs/failures.md).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from typing import NamedTuple, TypeAlias

from artist.cluster.placement import Placement
from artist.contract import JobView, Rate, RateFunction, RatesAround
from artist.failures.failing_units import SlowLeaves
from artist.units import LAST_TICK, Tick

RateInIsolation: TypeAlias = "Callable[[JobView, Placement, Tick, float], Rate]"
"""The rate of a running job by the estimate, at a tick, on GPUs that compute a factor longer."""


class _Leaf(NamedTuple):
    """What is slow of one leaf: the slowest unit from each edge to the next."""

    edges: Sequence[Tick]
    """When a unit around the leaf begins or ceases to be slow, ascending."""
    slowest: Sequence[SlowLeaves | None]
    """The slowest unit before the first edge, and from each edge on; None: at full speed."""

    def at(self, tick: Tick) -> SlowLeaves | None:
        return self.slowest[bisect_right(self.edges, tick)]


class SlowPeriods:
    """Which leaves are slow, and when."""

    def __init__(self, slow: Iterable[SlowLeaves]) -> None:
        by_leaf: dict[int, list[SlowLeaves]] = {}
        for one in slow:
            for leaf in one.leaves:
                by_leaf.setdefault(leaf, []).append(one)
        self._by_leaf = {leaf: _slowest(several) for leaf, several in by_leaf.items()}
        self._now: Tick = 0

    def at(self, placement: Placement, now: Tick) -> tuple[float, Tick | None]:
        """How many times longer a placement computes, and when that may change; None: never."""
        self._now = now
        slowdown, until = 1.0, None
        for edges, slowest in self._of(placement):
            place = bisect_right(edges, now)
            if (one := slowest[place]) is not None:
                slowdown = max(slowdown, one.slowdown)
            if place < len(edges):
                until = edges[place] if until is None else min(until, edges[place])
        return slowdown, until

    def slowest(self, placement: Placement, tick: Tick) -> SlowLeaves | None:
        """The slowest unit with GPUs of a placement at a tick; None: all are at full speed."""
        there = [one for leaf in self._of(placement) if (one := leaf.at(tick)) is not None]
        return max(there, key=lambda one: one.slowdown, default=None)

    def for_trials(self) -> SlowPeriods:
        """A twin for trials, which know no future: slow units stay slow, and others never are."""
        now = self._now
        slow = dict.fromkeys(leaf.at(now) for leaf in self._by_leaf.values())
        return SlowPeriods(one._replace(end=LAST_TICK) for one in slow if one is not None)

    def _of(self, placement: Placement) -> Iterator[_Leaf]:
        """The leaves of a placement that are slow at any time."""
        for leaf in placement.leaves:
            if leaf in self._by_leaf:
                yield self._by_leaf[leaf]


def _slowest(slow: Sequence[SlowLeaves]) -> _Leaf:
    """One leaf, from the units with it that are slow; of equally slow ones the first counts."""
    ordered = sorted(enumerate(slow), key=lambda each: each[1].start, reverse=True)
    edges = sorted({tick for one in slow for tick in (one.start, one.end) if tick < LAST_TICK})
    slowest: list[SlowLeaves | None] = [None]
    begun: list[tuple[float, int]] = []  # a heap: what is slow, or was, the slowest first
    for tick in edges:
        while ordered and ordered[-1][1].start <= tick:
            index, one = ordered.pop()
            heappush(begun, (-one.slowdown, index))
        while begun and slow[begun[0][1]].end <= tick:
            heappop(begun)
        slowest.append(slow[begun[0][1]] if begun else None)
    return _Leaf(edges, slowest)


class SlowedRates(RatesAround):
    """Another rate function, extended to jobs on slow machines."""

    def __init__(
        self, inside: RateFunction, isolated: RateInIsolation, slowdowns: SlowPeriods
    ) -> None:
        super().__init__(inside, slowdowns)
        self._isolated, self._slowdowns = isolated, slowdowns

    def __call__(
        self, now: Tick, running: Mapping[int, JobView], changed: Sequence[JobView]
    ) -> Mapping[int, Rate]:
        """The rates of the function inside, slowed."""
        rates = self._inside(now, running, changed)
        return {handle: self._slowed(running[handle], rate, now) for handle, rate in rates.items()}

    def _slowed(self, view: JobView, rate: Rate, now: Tick) -> Rate:
        assert view.placement is not None  # running jobs have GPUs
        slowdown, until = self._slowdowns.at(view.placement, now)
        if until is not None and (rate.until is None or until < rate.until):
            rate = rate._replace(until=until)
        if slowdown == 1.0:
            return rate
        at_full_speed = self._isolated(view, view.placement, now, 1.0)
        slowed = self._isolated(view, view.placement, now, slowdown)
        return rate._replace(
            # The difference comes first: its terms have the same compute time, so it is exactly 0
            # without contention.
            iteration_s=rate.iteration_s - at_full_speed.iteration_s + slowed.iteration_s,
            source=f"{rate.source}+slow",
            alone_iteration_s=slowed.iteration_s,
            compute_scale=slowed.compute_scale,
        )
