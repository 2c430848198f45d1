"""Time-shifts of the jobs of one link (CASSINI, eq. 5).

    t = (rotation / 2 pi x perimeter) mod iteration

The best rotations often form a plateau. `first` takes its first angle, as in the paper's values.
`centre` takes its middle, which is farthest from both ends, where jitter harms.

**Rotations.** The paper names no solver for the rotations with the highest score (Table 1), so the
search is artist's own. Up to three jobs are searched exhaustively. Rotating all jobs together
changes nothing, so the first job stays at 0. Beside jobs whose common period is L, the score
repeats after gcd(the job's period, L). Only rotations below that are tried, and the first best one
is the same as over the whole range of eq. 4.

More jobs are searched by coordinate descent: from each of 16 starts, every job in turn takes its
best rotation, until no job can raise the score. The first start is all zeros, the others are drawn
at random. On 200 random links with four jobs, 8 % missed the optimum, by at most .008 of the score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, lcm, prod

import numpy as np

from artist.policies.cassini.job_circle import Circle, Floats
from artist.policies.cassini.link_circle import ANGLE_DEG, Choice, Periods
from artist.policies.cassini.score import LinkCircle, link_circle
from artist.rng import stream

EXHAUSTIVE_JOBS = 3
STARTS = 16

MOST_WORK = 100_000_000
"""The most additions of an exhaustive search: about a second. Snapped ratios of three jobs need
fewer."""

AT_ONCE = 200_000
"""Demands in memory at a time, few enough to stay in the processor's cache."""

SAME = 1e-9
"""Scores that differ by less are equal: their sums were only added in another order."""


def best_rotations(link: LinkCircle, seed: int) -> tuple[int, ...]:
    """The first rotations, in angles by job, that give the highest score."""
    if len(link.demands) <= EXHAUSTIVE_JOBS and _work(link) <= MOST_WORK:
        return exhaustive(link)
    return descent(link, seed)


def exhaustive(link: LinkCircle) -> tuple[int, ...]:
    """The first of all best rotations, for any number of jobs, in exponential time."""
    ranges = _ranges(link)
    if len(ranges) == 1:
        return (0,)
    totals = link.demands[0][None, :]
    for place in range(1, len(ranges) - 1):
        rolled = link.rolled(place, ranges[place])
        totals = (totals[:, None, :] + rolled[None, :, :]).reshape(-1, link.perimeter.bins)
    last = len(ranges) - 1
    rows = [
        link.scores_beside(batch, last)[:, : ranges[-1]]
        for batch in np.array_split(totals, -(-totals.size // AT_ONCE))
    ]
    scores = np.concatenate(rows).reshape(ranges)
    first = int(np.argmax(scores >= scores.max() - SAME))
    return tuple(int(x) for x in np.unravel_index(first, ranges))


def descent(link: LinkCircle, seed: int = 0) -> tuple[int, ...]:
    """The best of 16 coordinate descents; the first in lexicographic order among equals."""
    rng = stream(seed, "cassini.rotations")
    size = link.perimeter.rotations
    starts = [(0,) * len(size)]
    starts += [tuple(int(rng.integers(n)) for n in size) for _ in range(STARTS - 1)]
    ends = sorted({_from_first_job(link, end) for end in _climbed(link, starts)})
    scores = [link.score(end) for end in ends]
    best = next(end for end, score in zip(ends, scores, strict=True) if score >= max(scores) - SAME)
    return _earliest(link, best)


def scores_of(link: LinkCircle, rotations: Sequence[int], place: int) -> Floats:
    """Scores over the rotations of one job while the others are fixed, until they repeat."""
    others = link.total(rotations) - np.roll(link.demands[place], rotations[place])
    scores: Floats = link.scores_beside(others[None, :], place)[0, : _repeats(link, place)]
    return scores


def plateau(link: LinkCircle, rotations: Sequence[int], place: int) -> tuple[int, int]:
    """How far one job may be rotated back and on without a lower score, while the others are fixed.

    The angles are (0 or negative, 0 or positive). If all rotations are equally good, the job may go
    on around its whole circle.
    """
    scores = scores_of(link, rotations, place)
    here = rotations[place] % len(scores)
    around = np.roll(scores >= scores[here] - SAME, -here)
    if around.all():
        return 0, link.perimeter.rotations[place] - 1
    return -int(np.argmin(around[::-1])), int(np.argmin(around)) - 1


def centred(link: LinkCircle, rotations: Sequence[int]) -> tuple[int, ...]:
    """Move each job except the first, in turn, to the middle of its plateau."""
    moved = list(rotations)
    for place in range(1, len(moved)):
        back, on = plateau(link, moved, place)
        if on - back + 1 < link.perimeter.rotations[place]:
            middle = moved[place] + (back + on) // 2
            moved[place] = middle % link.perimeter.rotations[place]
    return tuple(moved)


def _repeats(link: LinkCircle, place: int) -> int:
    """The angles of one job after which the score repeats, at any rotations of the others."""
    units = link.perimeter.units
    others = lcm(*units[:place], *units[place + 1 :])
    return gcd(units[place], others) * link.perimeter.bins_per_unit


def _ranges(link: LinkCircle) -> tuple[int, ...]:
    """How many rotations to try for each job: then the score with all earlier jobs repeats."""
    units, ranges = link.perimeter.units, [1]
    for place in range(1, len(units)):
        ranges.append(gcd(units[place], lcm(*units[:place])) * link.perimeter.bins_per_unit)
    return tuple(ranges)


def _work(link: LinkCircle) -> int:
    return prod(_ranges(link)) * link.perimeter.bins * len(link.floating[0])


def _climbed(link: LinkCircle, starts: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """The ends of coordinate descents: every job in turn takes its first best rotation.

    All starts climb side by side. A descent ends when a round does not raise its score.
    """
    now = [list(start) for start in starts]
    totals = np.array([link.total(start) for start in starts])
    best = link.scores(totals)
    going = list(range(len(starts)))
    while going:
        for place in range(len(link.demands)):
            repeats = _repeats(link, place)
            own = link.demands[place]
            others = np.array([totals[x] - np.roll(own, now[x][place]) for x in going])
            every = link.scores_beside(others, place)[:, :repeats]
            for row, x in enumerate(going):
                scores = every[row]
                if scores.max() > scores[now[x][place] % repeats] + SAME:
                    now[x][place] = int(np.argmax(scores >= scores.max() - SAME))
                    totals[x] = others[row] + np.roll(own, now[x][place])
        scores_now = link.scores(totals)
        going = [x for x in going if scores_now[x] > best[x] + SAME]
        best = scores_now
    return [tuple(end) for end in now]


def _from_first_job(link: LinkCircle, rotations: Sequence[int]) -> tuple[int, ...]:
    """The same rotations, turned together so that the first job is at 0."""
    size = link.perimeter.rotations
    return tuple((by - rotations[0]) % n for by, n in zip(rotations, size, strict=True))


def _earliest(link: LinkCircle, rotations: Sequence[int]) -> tuple[int, ...]:
    """Move each job except the first, in turn, to its first rotation that is equally good."""
    moved = list(rotations)
    for place in range(1, len(moved)):
        scores = scores_of(link, moved, place)
        here = moved[place] % len(scores)
        moved[place] = int(np.argmax(scores >= scores[here] - SAME))
    return tuple(moved)


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
    """The range in which each job may be shifted without a lower score, while the others are fixed.
    A negative lower end lies in the iteration before."""
    period_s: float
    """The perimeter of the unified circle."""
    periods_s: tuple[float, ...]
    """Iterations on the circle, snapped."""


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
    """The score at these time-shifts, which need not be whole angles."""
    link = shifted(circles, capacity, shifts_s, options)
    return link.score([0] * len(link.perimeter.jobs))


def shifted(
    circles: Sequence[Circle], capacity: float, shifts_s: Sequence[float], options: SolverOptions
) -> LinkCircle:
    """The link with its jobs at these time-shifts."""
    delayed = [circle.delayed(by_s) for circle, by_s in zip(circles, shifts_s, strict=True)]
    return link_circle(delayed, capacity, options.periods, options.angle_deg)


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
