"""Solves links. Equal links recur from question to question, so each is solved only once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from artist.contract import Uplink
from artist.policies.cassini.job_circle import Circle
from artist.policies.cassini.link_circle import Periods, in_reach, unify
from artist.policies.cassini.score import expected_score
from artist.policies.cassini.time_shifts import PAPER, Solution, SolverOptions, score_at, solve


@dataclass(frozen=True, slots=True)
class LinkPatterns:
    """The jobs that cross a link in one direction, and the circle of each job there.

    A job's circles have the same period on all links.
    """

    capacity: float
    jobs: tuple[int, ...]
    circles: tuple[Circle, ...]
    uplink: Uplink = (0, 0)
    """The link itself. The solution does not depend on it."""


class LinkSolver:
    """Solves links, and keeps the answers by capacity and circles.

    If the common multiple of a link's periods has too many angles (`Periods.LCM`), its periods are
    snapped instead, so that a run does not fail. `snaps` says for which links.
    """

    def __init__(self, options: SolverOptions = PAPER) -> None:
        self.options = options
        self._solved: dict[tuple[float, tuple[Circle, ...]], Solution] = {}
        self._places: dict[tuple[float, ...], tuple[int, ...]] = {}
        self._expected: dict[tuple[float, tuple[Circle, ...]], float] = {}

    def solve(self, use: LinkPatterns) -> Solution:
        """The best time-shifts of the jobs of a link.

        Raises:
            ConfigError: as `artist.policies.cassini.score.link_circle`.
        """
        key = use.capacity, use.circles
        if key not in self._solved:
            self._solved[key] = solve(use.circles, use.capacity, self._options(use))
        return self._solved[key]

    def phased(self, use: LinkPatterns) -> tuple[int, ...]:
        """The jobs on the link's unified circle: only their phases matter."""
        periods_s = tuple(circle.period_s for circle in use.circles)
        if periods_s not in self._places:
            options = self._options(use)
            self._places[periods_s] = unify(periods_s, options.periods, options.angle_deg).jobs
        return tuple(use.jobs[place] for place in self._places[periods_s])

    def turns(self, use: LinkPatterns) -> dict[int, float]:
        """By job: the best time-shift on the link, as a part of its iteration on the circle."""
        solution = self.solve(use)
        return {
            job: shift_s / period_s
            for job, shift_s, period_s in zip(
                use.jobs, solution.shifts_s, solution.periods_s, strict=True
            )
        }

    def score_at(self, use: LinkPatterns, turns: Mapping[int, float]) -> float:
        """The score of a link at these time-shifts, as parts of an iteration; 0 for other jobs."""
        shifts_s = [
            turns.get(job, 0.0) * circle.period_s
            for job, circle in zip(use.jobs, use.circles, strict=True)
        ]
        return score_at(use.circles, use.capacity, shifts_s, self._options(use))

    def expected(self, use: LinkPatterns) -> float:
        """The mean score over random phases."""
        key = use.capacity, use.circles
        if key not in self._expected:
            self._expected[key] = expected_score(use.circles, use.capacity)
        return self._expected[key]

    def snaps(self, use: LinkPatterns) -> bool:
        """Whether periods are snapped because their common multiple has too many angles."""
        periods_s = [circle.period_s for circle in use.circles]
        return not in_reach(periods_s, self.options.periods, self.options.angle_deg)

    def _options(self, use: LinkPatterns) -> SolverOptions:
        return replace(self.options, periods=Periods.SNAP) if self.snaps(use) else self.options

    def gains(self, use: LinkPatterns, least: float) -> bool:
        """Whether `gain` reaches `least`. As no score exceeds 1, most links need no solving."""
        return 1.0 - self.expected(use) >= least and self.gain(use) >= least

    def gain(self, use: LinkPatterns) -> float:
        """How much time-shifts raise a link's score over random phases, less what waiting costs.

        The cost is the mean part of an iteration for which jobs wait for the slowest. Periods of
        100 and 104 ms are equal on the circle, so the faster job loses 4 %.
        """
        solution = self.solve(use)
        paces = [
            snapped_s / circle.period_s
            for snapped_s, circle in zip(solution.periods_s, use.circles, strict=True)
        ]
        waits = math.fsum(pace / min(paces) - 1.0 for pace in paces) / len(paces)
        return solution.score - self.expected(use) - waits
