"""A job's circle: its demand over one iteration (CASSINI, section 3).

Time is rolled around a circle whose perimeter is the iteration time. Arcs are Up phases with a
demand; the rest of the circle is Down. Times are seconds. Demands and capacities may have any
common unit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from artist.errors import ConfigError

Floats = npt.NDArray[np.float64]

ROUNDING = 1e-9
"""Share of a period by which rounding may lengthen an arc."""


@dataclass(frozen=True, slots=True)
class Arc:
    """An Up phase: from `start_s` on, for `length_s`, a job wants to send at rate `demand`."""

    start_s: float
    length_s: float
    demand: float


@dataclass(frozen=True, slots=True)
class Circle:
    """What an isolated job wants to send in one iteration. Arcs are in order and do not overlap."""

    period_s: float
    arcs: tuple[Arc, ...] = ()

    def __post_init__(self) -> None:
        if not 0 < self.period_s < math.inf:
            raise ConfigError(
                f"period {self.period_s:g} s: an iteration takes a finite time above 0"
            )
        until_s, slack_s = 0.0, ROUNDING * self.period_s
        for arc in self.arcs:
            if not 0 <= arc.demand < math.inf:
                raise ConfigError(f"demand {arc.demand:g}: expected a finite rate from 0")
            if not arc.length_s >= 0 or not arc.start_s >= until_s - slack_s:
                raise ConfigError(
                    f"arc from {arc.start_s:g} s for {arc.length_s:g} s: arcs start at 0 or later, "
                    "come in order and do not overlap"
                )
            until_s = arc.start_s + arc.length_s
        if not until_s <= self.period_s + slack_s:
            raise ConfigError(
                f"the last arc ends at {until_s:g} s, after the period of {self.period_s:g} s; "
                "shorten it"
            )

    @classmethod
    def down_then_up(cls, period_s: float, up_s: float, demand: float) -> Circle:
        """Down first, then Up once until the iteration ends (CASSINI, Fig. 3).

        Raises:
            ConfigError: a bad number, or an Up phase longer than the period.
        """
        if not 0 <= up_s <= period_s:
            raise ConfigError(
                f"Up phase of {up_s:g} s in a period of {period_s:g} s: expected 0 up to the period"
            )
        return cls(period_s, (Arc(period_s - up_s, up_s, demand),) if up_s else ())

    @property
    def peak(self) -> float:
        """The largest demand."""
        return max((arc.demand for arc in self.arcs), default=0.0)

    def delayed(self, by_s: float) -> Circle:
        """The circle of the same job when its iterations start `by_s` later."""
        turned: list[Arc] = []
        for arc in self.arcs:
            start_s = (arc.start_s + by_s) % self.period_s
            before_s = min(arc.length_s, self.period_s - start_s)
            turned.append(Arc(start_s, before_s, arc.demand))
            if arc.length_s > before_s:
                turned.append(Arc(0.0, arc.length_s - before_s, arc.demand))
        return Circle(self.period_s, tuple(sorted(turned, key=lambda arc: arc.start_s)))

    def demand_per_bin(self, bins: int) -> Floats:
        """The mean demand in each of `bins` equal parts of the circle, from angle 0 on.

        A bin that an arc covers in part has a part of the arc's demand, so that no byte is lost.
        """
        times_s, sent = [0.0], [0.0]
        for arc in self.arcs:
            times_s += [arc.start_s, arc.start_s + arc.length_s]
            sent += [sent[-1], sent[-1] + arc.length_s * arc.demand]
        edges = np.interp(np.arange(bins + 1) * (self.period_s / bins), times_s, sent)
        edges[-1] = sent[-1]
        demand: Floats = np.diff(edges) * (bins / self.period_s)
        return demand

    def levels(self) -> tuple[Floats, Floats]:
        """Demands, and the share of an iteration at each, which is all that random phases need."""
        shares: dict[float, float] = {}
        for arc in self.arcs:
            shares[arc.demand] = shares.get(arc.demand, 0.0) + arc.length_s / self.period_s
        down = max(1.0 - math.fsum(shares.values()), 0.0)
        shares[0.0] = shares.get(0.0, 0.0) + down
        return np.array(sorted(shares)), np.array([shares[x] for x in sorted(shares)])


def total_levels(circles: Sequence[Circle], step: float) -> tuple[Floats, Floats]:
    """Total demands of jobs at random, independent phases, and the probability of each.

    More than `MOST_LEVELS` demands are rounded to multiples of `step`, and so merged.
    """
    demands, shares = np.zeros(1), np.ones(1)
    for circle in circles:
        own, parts = circle.levels()
        sums = np.add.outer(demands, own).ravel()
        if len(sums) > MOST_LEVELS:
            sums = np.rint(sums / step) * step
        demands, place = np.unique(sums, return_inverse=True)
        weights = np.multiply.outer(shares, parts).ravel()
        shares = np.bincount(place, weights).astype(np.float64)
    return demands, shares


MOST_LEVELS = 1024
"""More demands than these are merged. Eight jobs with one Up phase each have at most 256."""
