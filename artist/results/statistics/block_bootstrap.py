"""How sure is a difference of two means over jobs, if only a few days were seen?

Jobs of a day are not independent: a long queue in the morning delays all of them. So days are drawn
with replacement, each with all its jobs and both their values. The interval is that of the drawn
differences. Its quantiles are widened for few days, since the bootstrap of n days varies too little
by a factor of (n - 1) / n, and a normal law has thinner ends than Student's t. Source: Hesterberg,
What Teachers Should Know About the Bootstrap (2015), section 5.3 ("expanded percentile").
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from artist.results.statistics.compare_values import LEAST_REPLICATES, Verdict
from artist.results.statistics.paired_input import Floats
from artist.results.statistics.students_t import t_quantile
from artist.rng import stream

DRAWS = 4000
"""At 4000 draws, the ends of a 95 % interval vary by about 2 % of its length."""


@dataclass(frozen=True, slots=True)
class BlockDifference:
    """How much larger a mean is, with its interval; NaN where there is none."""

    baseline: float
    other: float
    low: float
    high: float
    verdict: Verdict
    blocks: int

    @property
    def difference(self) -> float:
        """Other - baseline."""
        return self.other - self.baseline


def block_difference(
    baseline: Floats, other: Floats, blocks: Sequence[Hashable], level: float = 0.95
) -> BlockDifference:
    """Compare the means of two values of the same jobs, which lie in these blocks (days, say)."""
    names, index = np.unique(np.asarray(blocks), return_inverse=True)
    count = len(names)
    means = float(np.mean(baseline)), float(np.mean(other))
    if np.array_equal(baseline, other):
        return BlockDifference(*means, 0.0, 0.0, Verdict.IDENTICAL, count)
    if count < LEAST_REPLICATES:
        return BlockDifference(*means, math.nan, math.nan, Verdict.TOO_FEW, count)
    sums = np.bincount(index, weights=other - baseline)
    sizes = np.bincount(index).astype(float)
    weights = stream(0, "block-bootstrap").multinomial(count, [1 / count] * count, size=DRAWS)
    drawn = (weights @ sums) / (weights @ sizes)
    low, high = np.quantile(drawn, _expanded(count, level))
    verdict = Verdict.UNDECIDED
    if low > 0 or high < 0:
        verdict = Verdict.MORE if low > 0 else Verdict.LESS
    return BlockDifference(*means, float(low), float(high), verdict, count)


def _expanded(count: int, level: float) -> tuple[float, float]:
    """The quantiles whose distance is right for so few blocks."""
    reach = t_quantile(level, count - 1) * math.sqrt(count / (count - 1))
    below = NormalDist().cdf(-reach)
    return below, 1 - below
