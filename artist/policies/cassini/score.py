"""The compatibility score of jobs on a link (CASSINI, Table 1).

    excess(demand) = max(demand - C, 0)                                (1)
    score          = 1 - sum over angles of excess / (|A| C)           (2)
    demand(angle)  = sum over jobs of bw_j(angle - rotation_j)         (3)

C is the nominal capacity. The score is 1 if the jobs never want more than the link has, and falls
below 0 if they want more than twice of it on average. Jobs that are not on the circle have random
phases; of them the excess is the expected one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from artist.errors import ConfigError
from artist.policies.cassini.circles import Circle, Floats, total_levels
from artist.policies.cassini.unified import ANGLE_DEG, Perimeter, Periods, unify

DIGITS = 12
"""Of a score. What is beyond depends on the order of additions."""


@dataclass(frozen=True)
class LinkCircle:
    """The jobs of a link on their unified circle.

    `demands[i]` is the demand of job `perimeter.jobs[i]` at each angle, at rotation 0.
    `floating` holds the total demands of the other jobs, and the probability of each.
    """

    capacity: float
    perimeter: Perimeter
    demands: tuple[Floats, ...]
    floating: tuple[Floats, Floats]

    def rolled(self, place: int, rotations: int) -> Floats:
        """Demand of a job at rotations 0 up to `rotations` - 1: a row each, a column per angle."""
        bins = self.perimeter.bins
        twice = np.concatenate((self.demands[place], self.demands[place]))
        # Window `bins` starts at angle 0, the one before at the last angle. Nothing is copied.
        rows: Floats = sliding_window_view(twice, bins)[bins::-1][:rotations]
        return rows

    def total(self, rotations: Sequence[int]) -> Floats:
        """Demand at each angle if jobs are rotated by so many angles (eq. 3)."""
        rolled = [np.roll(own, by) for own, by in zip(self.demands, rotations, strict=True)]
        total: Floats = np.sum(rolled, axis=0)
        return total

    def scores(self, total: Floats) -> Floats:
        """The score of each row of total demands (eqs. 1 and 2)."""
        excess = np.zeros(total.shape[:-1])
        for extra, probability in zip(*self.floating, strict=True):
            above = total - (self.capacity - extra)
            excess += probability * np.maximum(above, 0.0, out=above).sum(axis=-1)
        scores: Floats = np.round(1.0 - excess / (self.perimeter.bins * self.capacity), DIGITS)
        return scores

    def score(self, rotations: Sequence[int]) -> float:
        """The score if jobs are rotated by so many angles."""
        return float(self.scores(self.total(rotations)))


def link_circle(
    circles: Sequence[Circle],
    capacity: float,
    rule: Periods = Periods.SNAP,
    angle_deg: int = ANGLE_DEG,
) -> LinkCircle:
    """The unified circle of the jobs of a link.

    Raises:
        ConfigError: no jobs, a capacity that is not above 0, or as `unify`.
    """
    _check(capacity)
    perimeter = unify([circle.period_s for circle in circles], rule, angle_deg)
    demands = []
    for job, bins in zip(perimeter.jobs, perimeter.rotations, strict=True):
        demands.append(np.tile(circles[job].demand_per_bin(bins), perimeter.bins // bins))
    others = [circle for job, circle in enumerate(circles) if job not in perimeter.jobs]
    return LinkCircle(capacity, perimeter, tuple(demands), total_levels(others, capacity / 1024))


def expected_score(circles: Sequence[Circle], capacity: float) -> float:
    """The mean score over random, independent phases: what nobody's shifts give."""
    _check(capacity)
    demands, shares = total_levels(circles, capacity / 1024)
    excess = float(shares @ np.maximum(demands - capacity, 0.0))
    return round(1.0 - excess / capacity, DIGITS)


def _check(capacity: float) -> None:
    if not 0 < capacity < math.inf:
        raise ConfigError(f"capacity {capacity:g} of a link: expected a finite rate above 0")
