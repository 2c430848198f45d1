"""Slow machines: a job on them goes at its slowest GPU, as its GPUs wait for each other.

    compute time = compute time at full speed / speed of the slowest unit

A rate function around another one. Bytes and links stay as they are, so an estimate of
communication is asked with the longer compute times, and hides as much as these allow. What other
jobs take of the links of a slowed job is what they would take of it at full speed.

Policies and estimates know nothing of it: operators find such machines late (docs/failures.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from artist.cluster.placement import Placement
from artist.contract import JobView, Rate, RateFunction, RatesAround
from artist.failures.failing_units import SlowLeaves
from artist.units import LAST_TICK, Tick

RateInIsolation: TypeAlias = "Callable[[JobView, Placement, Tick, float], Rate]"
"""The rate of a running job by the estimate, at a tick, on GPUs that compute so many times longer.
"""


class Slowdowns:
    """Which leaves are slow, and when."""

    def __init__(self, slow: Iterable[SlowLeaves]) -> None:
        self._by_leaf: dict[int, list[SlowLeaves]] = {}
        for one in slow:
            for leaf in one.leaves:
                self._by_leaf.setdefault(leaf, []).append(one)
        self._now: Tick = 0

    def at(self, placement: Placement, now: Tick) -> tuple[float, Tick | None]:
        """How many times longer GPUs compute there, and when that may change; None: never."""
        self._now = now
        slowdown, until = 1.0, None
        for leaf in placement.leaves:
            for one in self._by_leaf.get(leaf, ()):
                if one.start <= now < one.end:
                    slowdown = max(slowdown, one.slowdown)
                change = one.start if now < one.start else one.end
                if now < change < LAST_TICK:
                    until = change if until is None else min(until, change)
        return slowdown, until

    def slowest(self, placement: Placement, tick: Tick) -> SlowLeaves | None:
        """The slowest unit that some of the GPUs are in at a tick; None: all are at full speed."""
        there = (
            one
            for leaf in placement.leaves
            for one in self._by_leaf.get(leaf, ())
            if one.start <= tick < one.end
        )
        return max(there, key=lambda one: one.slowdown, default=None)

    def for_trials(self) -> Slowdowns:
        """As trials have it: what is slow stays slow, and nothing else becomes slow."""
        now = self._now
        slow = dict.fromkeys(one for several in self._by_leaf.values() for one in several)
        return Slowdowns(one._replace(end=LAST_TICK) for one in slow if one.start <= now < one.end)


class SlowedRates(RatesAround):
    """The rate function inside, for jobs on slow machines too."""

    def __init__(
        self, inside: RateFunction, isolated: RateInIsolation, slowdowns: Slowdowns
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
            # First the difference of two sums with the same compute time: 0 without contention.
            iteration_s=rate.iteration_s - at_full_speed.iteration_s + slowed.iteration_s,
            source=f"{rate.source}+slow",
            alone_iteration_s=slowed.iteration_s,
            compute_scale=slowed.compute_scale,
        )
