"""Jobs that arrive after the end of a log, drawn from its past.

The past is cut into blocks that end at the moment: days if there are at least two, so that each
keeps its hours of the day, else tenths. Blocks are drawn one after the other (block bootstrap;
Künsch, 1989). With at least two weeks, weekends are drawn from weekends and other days from other
days. Few blocks say little about how much arrives, so each future weights them at random (Rubin,
*The Bayesian bootstrap*, 1981).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

import numpy as np

from artist.workload.job import Job

DAY_S = 86400.0
PARTS = 10
"""Blocks of a log that is shorter than two days."""
_WEEKS_S = 14 * DAY_S


class LaterArrivals:
    """Draws arrivals after a moment. `zero_s` is the Unix time at which the trace begins."""

    def __init__(self, jobs: Sequence[Job], at_s: float, zero_s: float) -> None:
        self._jobs, self._at_s = jobs, at_s
        self._arrivals_s = [job.arrival_s for job in jobs]
        self._block_s = DAY_S if at_s >= 2 * DAY_S else at_s / PARTS
        count = int(at_s / self._block_s) if at_s > 0 else 0
        self._begins_s = [at_s - (x + 1) * self._block_s for x in range(count)]
        self._zero_s = zero_s

    def draw(self, horizon_s: float, draws: np.random.Generator) -> Iterator[tuple[float, Job]]:
        """The arrivals until the horizon: time, and the job of the past to copy."""
        weights = draws.exponential(size=len(self._begins_s))
        end_s, begin_s = self._at_s + horizon_s, self._at_s
        while begin_s < end_s and self._begins_s:
            alike = weights * [self._is_alike(x, begin_s) for x in self._begins_s]
            from_s = float(draws.choice(self._begins_s, p=alike / alike.sum()))
            first, last = (
                bisect_left(self._arrivals_s, x) for x in (from_s, from_s + self._block_s)
            )
            for job in self._jobs[first:last]:
                if (arrival_s := begin_s + job.arrival_s - from_s) <= end_s:
                    yield arrival_s, job
            begin_s += self._block_s

    def _is_alike(self, one_s: float, other_s: float) -> bool:
        """Whether both days are weekend days, or neither; always for less than two weeks."""
        return self._at_s < _WEEKS_S or self._is_weekend(one_s) == self._is_weekend(other_s)

    def _is_weekend(self, begin_s: float) -> bool:
        # 1970 began on a Thursday.
        return ((self._zero_s + begin_s) // DAY_S + 3) % 7 >= 5
