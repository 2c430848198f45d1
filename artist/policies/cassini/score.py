"""The compatibility score of jobs on a link (CASSINI, Table 1).

    excess(demand) = max(demand - C, 0)                                (1)
    score          = 1 - sum over angles of excess / (|A| C)           (2)
    demand(angle)  = sum over jobs of bw_j(angle - rotation_j)         (3)

C is the nominal capacity. The score is 1 if the jobs never want more than the link has. It is below
0 if their mean excess is larger than the capacity. Jobs that are not on the circle have random
phases; the excess is its expected value over them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from artist.errors import ConfigError
from artist.policies.cassini.job_circle import ROUNDING, Circle, Floats, total_levels
from artist.policies.cassini.link_circle import ANGLE_DEG, Perimeter, Periods, unify

DIGITS = 12
"""Digits of a score. Further digits would depend on the order of additions."""


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
        """Demand of a job at rotations 0 to `rotations` - 1: one row each, one column per angle."""
        bins = self.perimeter.bins
        twice = np.concatenate((self.demands[place], self.demands[place]))
        # Window `bins` starts at angle 0, the one before it at the last angle. Nothing is copied.
        rows: Floats = sliding_window_view(twice, bins)[bins::-1][:rotations]
        return rows

    def total(self, rotations: Sequence[int]) -> Floats:
        """Total demand at each angle, if the jobs are rotated by these angles (eq. 3)."""
        rolled = [np.roll(own, by) for own, by in zip(self.demands, rotations, strict=True)]
        total: Floats = np.sum(rolled, axis=0)
        return total

    def scores(self, total: Floats) -> Floats:
        """The score of each row of total demands (eqs. 1 and 2)."""
        return self._scored(self._excess(total).sum(axis=-1))

    def scores_beside(self, others: Floats, place: int) -> Floats:
        """Scores of one job at each of its rotations, beside the total demands of the others.

        There is a row for each row of `others`, and a column for each rotation in an iteration of
        the job. The job's demand has few levels. At one level, the excess at an angle does not
        depend on the rotation, so an arc adds the difference of two running sums.
        """
        own = self.perimeter.rotations[place]
        demand = self.demands[place][:own]
        resting = float(demand.min())
        rest = self._excess(others + resting)
        excess = np.repeat(rest.sum(axis=-1)[:, None], own, axis=1)
        for start, end in _arcs(demand, resting):
            more = self._excess(others + demand[start]) - rest
            turn = more.reshape(len(others), -1, own).sum(axis=1)
            sums = np.zeros((len(others), 2 * own + 1))
            np.cumsum(np.concatenate((turn, turn), axis=1), axis=1, out=sums[:, 1:])
            excess += sums[:, end : end + own] - sums[:, start : start + own]
        return self._scored(excess)

    def _excess(self, total: Floats) -> Floats:
        """Demand above the capacity at each angle (eq. 1), expected over the other jobs' phases."""
        excess = np.zeros(total.shape)
        for extra, probability in zip(*self.floating, strict=True):
            excess += probability * np.maximum(total - (self.capacity - extra), 0.0)
        return excess

    def _scored(self, excess: Floats) -> Floats:
        scores: Floats = np.round(1.0 - excess / (self.perimeter.bins * self.capacity), DIGITS)
        return scores

    def score(self, rotations: Sequence[int]) -> float:
        """The score if the jobs are rotated by these angles."""
        return float(self.scores(self.total(rotations)))


def _arcs(demand: Floats, resting: float) -> Iterator[tuple[int, int]]:
    """(start, end) in angles of each stretch in which a demand is at one level above `resting`.

    Equal demands may differ by rounding.
    """
    same = ROUNDING * float(demand.max())
    edges = np.flatnonzero(np.abs(np.diff(demand)) > same) + 1
    starts, ends = [0, *edges.tolist()], [*edges.tolist(), len(demand)]
    for start, end in zip(starts, ends, strict=True):
        if demand[start] > resting + same:
            yield start, end


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
    """The mean score over random, independent phases, which jobs have without time-shifts."""
    _check(capacity)
    demands, shares = total_levels(circles, capacity / 1024)
    excess = float(shares @ np.maximum(demands - capacity, 0.0))
    return round(1.0 - excess / capacity, DIGITS)


def _check(capacity: float) -> None:
    if not 0 < capacity < math.inf:
        raise ConfigError(f"capacity {capacity:g} of a link: expected a finite rate above 0")
