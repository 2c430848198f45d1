"""How likely do more replicates decide a comparison, if its difference and scatter stay?

There are k independent steps of mean m and sample deviation s. Taken as the true ones, j more
steps, n = k + j in all, have with Z ~ N(0, 1) and W ~ chi-square of j - 1 degrees

    mean        = m + s Z sqrt(j) / n
    (n - 1) sd^2 = s^2 (k - 1 + W + k / n Z^2)

The steps at hand are kept, so only the new ones vary. The comparison is decided if the interval of
level `differ` leaves out 0, or that of level `equal` lies within the margin. For each Z that is a
bound of W, whose probability is averaged over Z.

The true difference is not known. If it is smaller than m, so is the chance.

Source of the chi-square distribution: Wilson and Hilferty, *The distribution of chi-square*,
Proceedings of the National Academy of Sciences, 1931.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

from artist.results.statistics.students_t import least_count, t_quantile

CHANCE: Final = 0.8
"""What "about N more" means: so likely they decide. The usual power of a planned trial."""

_NORMAL = NormalDist()
_POINTS = 50
_STEPS = [_NORMAL.inv_cdf((place + 0.5) / _POINTS) for place in range(_POINTS)]
"""Values of Z of equal probability."""


@dataclass(frozen=True, slots=True)
class Open:
    """An undecided comparison: its steps so far, and the tests that would decide it."""

    mean: float
    deviation: float
    """Sample standard deviation; above 0 and finite."""
    count: int
    margin: float
    """Steps whose mean is nearer to 0 are no difference; 0: there is no such test."""
    differ: float
    """Level of the interval that must leave out 0."""
    equal: float
    """Level of the interval that must lie within the margin."""

    def soonest(self, most: int) -> int | None:
        """The fewest steps in all that decide, if they have the very same mean and deviation."""
        effect = abs(self.mean) / self.deviation
        return least_count(self.count + 1, most, lambda n: n * self._bounds(n)(effect) ** 2 > 1)

    def enough(self, most: int) -> int | None:
        """The fewest steps in all that decide with a chance of `CHANCE`; None: above `most`."""
        return least_count(self.count + 1, most, lambda n: self.chance(n) >= CHANCE)

    def chance(self, total: int) -> float:
        """The probability that `total` steps decide, more than there are now."""
        more, effect = total - self.count, abs(self.mean) / self.deviation
        bound, squares = self._bounds(total), total * (total - 1)
        chances = []
        for step in _STEPS:
            known = self.count - 1 + self.count / total * step**2
            widest = bound(abs(effect + step * math.sqrt(more) / total))
            chances.append(_chi_square(squares * widest**2 - known, more - 1))
        return math.fsum(chances) / _POINTS

    def _bounds(self, total: int) -> Callable[[float], float]:
        """Mean -> the largest sd / sqrt(n) that decides, both in deviations."""
        differ, equal = (t_quantile(level, total - 1) for level in (self.differ, self.equal))
        margin = self.margin / self.deviation
        return lambda mean: max(mean / differ, (margin - mean) / equal)


def _chi_square(x: float, degrees: int) -> float:
    """P(W <= x); without degrees W is 0."""
    if x <= 0 or not degrees:
        return float(x >= 0)
    width = 2 / (9 * degrees)
    return _NORMAL.cdf(((x / degrees) ** (1 / 3) - 1 + width) / math.sqrt(width))
