"""Time-shifts of the jobs of one link (CASSINI, eq. 5).

    t = (rotation / 2 pi x perimeter) mod iteration

The best rotations are often a whole plateau. `first` takes the first angle that is feasible, as the
paper's values are. `centre` takes the middle: the farthest from both ends, where jitter harms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from artist.policies.cassini.circles import Circle
from artist.policies.cassini.rotations import best_rotations, centred, plateau
from artist.policies.cassini.score import LinkCircle, link_circle
from artist.policies.cassini.unified import ANGLE_DEG, Choice, Periods


@dataclass(frozen=True, slots=True)
class SolverOptions:
    """How a link is solved."""

    angle_deg: int = ANGLE_DEG
    periods: Periods = Periods.SNAP
    choice: Choice = Choice.FIRST
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Solution:
    """The answer for one link. All tuples are in the order of its jobs.

    A job off the circle has shift 0, no plateau, and its own period.
    """

    score: float
    shifts_s: tuple[float, ...]
    plateaus_s: tuple[tuple[float, float] | None, ...]
    """From where to where each job may be shifted, the others held, without a lower score. The
    lower end may be negative: an iteration earlier."""
    period_s: float
    """The perimeter of the unified circle."""
    periods_s: tuple[float, ...]
    """Iterations as they are on the circle, snapped."""


PAPER = SolverOptions()
"""5 degrees, first feasible angle (CASSINI, section 5.1); periods snapped (decision 21)."""


def solve(circles: Sequence[Circle], capacity: float, options: SolverOptions = PAPER) -> Solution:
    """The best score of the jobs of a link, and the time-shifts that reach it.

    Raises:
        ConfigError: as `link_circle`.
    """
    link = link_circle(circles, capacity, options.periods, options.angle_deg)
    rotations = best_rotations(link, options.seed)
    if options.choice is Choice.CENTRE:
        rotations = centred(link, rotations)
    return _solution(circles, link, rotations)


def score_at(
    circles: Sequence[Circle],
    capacity: float,
    shifts_s: Sequence[float],
    options: SolverOptions = PAPER,
) -> float:
    """The score at given time-shifts, which need not be whole angles."""
    delayed = [circle.delayed(by_s) for circle, by_s in zip(circles, shifts_s, strict=True)]
    link = link_circle(delayed, capacity, options.periods, options.angle_deg)
    return link.score([0] * len(link.perimeter.jobs))


def _solution(circles: Sequence[Circle], link: LinkCircle, rotations: Sequence[int]) -> Solution:
    bin_s = link.perimeter.bin_s
    shifts_s = [0.0] * len(circles)
    plateaus_s: list[tuple[float, float] | None] = [None] * len(circles)
    periods_s = [circle.period_s for circle in circles]
    for place, job in enumerate(link.perimeter.jobs):
        back, on = (0, 0) if place == 0 else plateau(link, rotations, place)
        shifts_s[job] = rotations[place] * bin_s
        plateaus_s[job] = ((rotations[place] + back) * bin_s, (rotations[place] + on) * bin_s)
        periods_s[job] = link.perimeter.periods_s[place]
    return Solution(
        link.score(rotations),
        tuple(shifts_s),
        tuple(plateaus_s),
        link.perimeter.period_s,
        tuple(periods_s),
    )
