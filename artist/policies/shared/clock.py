"""A clock that strikes at regular times, such as the ends of time slices or bidding periods.

    strikes = first arrival + phase + 0, 1, 2 ... x period

Strikes count from the first arrival, not from time 0, so that a trace that begins later has the
same results. A cluster's clock does not know when jobs arrive, so the phase is drawn at random
(`artist.rng.Draws.phase`).
"""

from __future__ import annotations

from artist.contract import ClusterView
from artist.units import Tick


class PeriodClock:
    """The clock of one policy. `phase` is from 0 to `period` - 1 ticks.

    Call `asked` at every question, before any other method.
    """

    __slots__ = ("_anchor", "_begun", "_period", "_phase")

    def __init__(self, period: Tick, phase: Tick) -> None:
        self._period = period
        self._phase = phase
        self._anchor: Tick = 0
        self._begun = False

    def asked(self, view: ClusterView) -> None:
        """Note a question. The first question with a job sets the clock."""
        if view.entered and not self._begun:
            self._anchor = view.entered[0].entered + self._phase
            self._begun = True

    def after(self, now: Tick) -> Tick:
        """The first strike after a tick."""
        return self.last(now) + self._period

    def at_or_after(self, tick: Tick) -> Tick:
        """The first strike at a tick or after it."""
        return self.last(tick - 1) + self._period

    def last(self, now: Tick) -> Tick:
        """The last strike at a tick or before it, even if it is before the first arrival."""
        return now - (now - self._anchor) % self._period
