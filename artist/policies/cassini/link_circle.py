"""The unified circle of a link: all jobs on one perimeter (CASSINI, section 3).

Its perimeter is a multiple of every period. The paper takes the least common multiple of the
iteration times. For measured times this is far too long: for two times of 100 to 400 ms in whole
milliseconds its median is 38 s, for three 3,856 s. So by default ratios of periods are snapped to
a / b with a and b up to 8. Jobs that do not snap stay off the circle, at random phases (`score`).
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, cached_property
from math import gcd, lcm

from artist.errors import ConfigError

ANGLE_DEG = 5
"""Precision of rotations (CASSINI, section 5.1): 72 angles. Here they divide the shortest
iteration. In the paper they divide the whole circle, which is the same if all periods are equal."""

LARGEST_TERM = 8
"""The largest term of a snapped ratio. With it, two periods of 100 to 400 ms are each off by .9 %
(median), by 3.1 % (P95) and by 3.8 % at most."""

DRIFT = 0.05
"""Share of the ideal iteration by which a start may be late (CASSINI, section 5.7). A job whose
period snaps worse than this would be corrected in every iteration, so it stays off the circle."""

MOST_SNAPPED_TURNS = 24
"""Largest snapped perimeter, in full sets of angles. It bounds the time of a search. Three or more
jobs whose terms up to 8 have a larger common multiple snap to smaller terms."""

MOST_BINS = 1_000_000
"""Largest perimeter in angles. Periods in milliseconds may have a common multiple of hours."""


class Periods(StrEnum):
    """How periods become commensurable: snapped, or the paper's LCM in whole milliseconds."""

    SNAP = "snap"
    LCM = "lcm"


def in_reach(periods_s: Sequence[float], rule: Periods, angle_deg: int) -> bool:
    """Whether `unify` can make a perimeter: some common multiples have too many angles."""
    if rule is not Periods.LCM:
        return True
    units, _ = _whole_units(periods_s)
    return lcm(*units) * _bins_per_unit(units, 360 // angle_deg) <= MOST_BINS


class Choice(StrEnum):
    """Which of equally good time-shifts (`time_shifts`)."""

    FIRST = "first"
    CENTRE = "centre"


@dataclass(frozen=True)
class Perimeter:
    """A circle that holds whole iterations of some of a link's jobs.

    `jobs` are their positions among the link's jobs, `units` their periods as multiples of
    `unit_s`. The link's other jobs have no phase relative to these.
    """

    jobs: tuple[int, ...]
    units: tuple[int, ...]
    unit_s: float
    bins_per_unit: int

    @cached_property
    def bins(self) -> int:
        """Discrete angles of the whole circle: |A| of eq. 2."""
        return lcm(*self.units) * self.bins_per_unit

    @property
    def bin_s(self) -> float:
        """Seconds of a discrete angle."""
        return self.unit_s / self.bins_per_unit

    @property
    def period_s(self) -> float:
        """Seconds of the perimeter: p of eq. 5."""
        return lcm(*self.units) * self.unit_s

    @property
    def periods_s(self) -> tuple[float, ...]:
        """The snapped iterations of the jobs on the circle, in seconds."""
        return tuple(units * self.unit_s for units in self.units)

    @property
    def rotations(self) -> tuple[int, ...]:
        """How many angles one iteration of each job has: the range of eq. 4."""
        return tuple(units * self.bins_per_unit for units in self.units)


def unify(
    periods_s: Sequence[float], rule: Periods = Periods.SNAP, angle_deg: int = ANGLE_DEG
) -> Perimeter:
    """The perimeter for jobs with these periods.

    Raises:
        ConfigError: the angle does not divide the circle, or an LCM is out of reach.
    """
    if angle_deg < 1 or 360 % angle_deg:
        raise ConfigError(f"angle {angle_deg} degrees: expected a whole divisor of 360")
    if not periods_s:
        raise ConfigError("a circle without jobs; give at least one")
    angles = 360 // angle_deg
    if rule is Periods.LCM:
        return _least_common_multiple(periods_s, angles)
    return _snapped(periods_s, angles)


@cache
def _ratios(largest: int) -> tuple[tuple[float, int, int], ...]:
    """a / b, a and b in lowest terms, both up to `largest`; ascending."""
    terms = range(1, largest + 1)
    return tuple(sorted((a / b, a, b) for b in terms for a in terms if gcd(a, b) == 1))


def snapped_ratio(ratio: float, largest: int = LARGEST_TERM) -> tuple[int, int]:
    """The nearest a / b with both up to `largest`, in lowest terms."""
    ratios = _ratios(largest)
    above = bisect(ratios, (ratio,))
    near = ratios[max(above - 1, 0) : above + 1]
    _, a, b = min(near, key=lambda term: (abs(term[0] - ratio), term[2]))
    return a, b


@dataclass(frozen=True, slots=True)
class _Snapped:
    """Jobs whose periods are a / b times a common period, which minimises the largest error."""

    jobs: tuple[int, ...]
    terms: tuple[tuple[int, int], ...]
    common_s: float
    error: float

    def rank(self) -> tuple[float, ...]:
        """Sorting key: most jobs first, then the smallest error, then the shortest period."""
        return -len(self.jobs), round(self.error, 9), self.common_s


def _snapped(periods_s: Sequence[float], angles: int) -> Perimeter:
    """The perimeter with the finest ratios that can still be searched."""
    for largest in range(LARGEST_TERM, 1, -1):
        made = _snapped_with(periods_s, angles, largest)
        if made.bins <= MOST_SNAPPED_TURNS * angles:
            return made
    return _snapped_with(periods_s, angles, 1)


def _snapped_with(periods_s: Sequence[float], angles: int, largest: int) -> Perimeter:
    """The perimeter around the period to which most others snap; the earliest of equal ones."""
    every = (_snapped_to(anchor, periods_s, largest) for anchor in range(len(periods_s)))
    best = min(every, key=_Snapped.rank)
    shared = lcm(*(b for _, b in best.terms))
    units = tuple(a * shared // b for a, b in best.terms)
    divisor = gcd(*units)
    unit_s = best.common_s * divisor / shared
    return _perimeter(best.jobs, tuple(x // divisor for x in units), unit_s, angles)


def _snapped_to(anchor: int, periods_s: Sequence[float], largest: int) -> _Snapped:
    """A job and the jobs that snap to it, taken nearest first while no error exceeds the drift."""
    terms = [snapped_ratio(own_s / periods_s[anchor], largest) for own_s in periods_s]
    commons_s = [period_s * b / a for period_s, (a, b) in zip(periods_s, terms, strict=True)]

    def distance(job: int) -> tuple[float, int]:
        return round(abs(commons_s[job] / periods_s[anchor] - 1.0), 9), job

    low_s = high_s = periods_s[anchor]
    jobs = []
    for job in sorted(range(len(periods_s)), key=distance):
        low, high = min(low_s, commons_s[job]), max(high_s, commons_s[job])
        if _error(low, high) <= DRIFT:
            low_s, high_s = low, high
            jobs.append(job)
    jobs.sort()
    # With this period, the longest and the shortest period are off by the same part.
    common_s = low_s if low_s == high_s else 2.0 / (1.0 / low_s + 1.0 / high_s)
    return _Snapped(tuple(jobs), tuple(terms[x] for x in jobs), common_s, _error(low_s, high_s))


def _error(low_s: float, high_s: float) -> float:
    return (high_s - low_s) / (high_s + low_s)


def _least_common_multiple(periods_s: Sequence[float], angles: int) -> Perimeter:
    units, unit_s = _whole_units(periods_s)
    return _perimeter(tuple(range(len(units))), units, unit_s, angles)


def _whole_units(periods_s: Sequence[float]) -> tuple[tuple[int, ...], float]:
    """Periods rounded to milliseconds: as multiples of their largest unit, and the unit in s."""
    whole_ms = [max(round(period_s * 1000), 1) for period_s in periods_s]
    divisor = gcd(*whole_ms)
    return tuple(x // divisor for x in whole_ms), divisor / 1000


def _bins_per_unit(units: Sequence[int], angles: int) -> int:
    return -(-angles // min(units))


def _perimeter(
    jobs: tuple[int, ...], units: tuple[int, ...], unit_s: float, angles: int
) -> Perimeter:
    made = Perimeter(jobs, units, unit_s, _bins_per_unit(units, angles))
    if made.bins > MOST_BINS:
        raise ConfigError(
            f"a common multiple of {made.period_s:g} s has {made.bins:,} angles, at most "
            f"{MOST_BINS:,}; snap the periods"
        )
    return made
