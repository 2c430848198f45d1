"""How sure is a difference of two means over jobs, if only a few days were seen?

Jobs of a day are not independent: a long queue in the morning delays all of them. So days are drawn
with replacement, each with all its jobs and both their values. Each draw gives a difference of the
two means and a ratio, and the intervals are quantiles of the draws. A drawn ratio of waits is never
below 0, so no wait falls by more than 100 %; a drawn difference over the observed mean may do so.
Quantiles are widened for few days, since the bootstrap of n days varies too little by a factor of
(n - 1) / n, and the normal distribution has thinner tails than Student's t. Source: Hesterberg,
What Teachers Should Know About the Bootstrap (2015), section 5.3 ("expanded percentile").

With few days that differ much, an interval of 95 % covers less. If the sums of days are log-normal
with a deviation of 1 and the ratios with a deviation of 0.5, then 5, 8 and 28 days cover 89, 91 and
92 %. If one day in twenty has most of the waiting and gains most, five days cover 65 %: they rarely
include such a day (`tests/results/test_block_bootstrap.py`).
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
    """How much larger a mean is, with its intervals; NaN where there is none."""

    baseline: float
    other: float
    low: float
    """Lower end of the interval of other - baseline."""
    high: float
    ratio_low: float
    """Lower end of the interval of other / baseline; NaN too where a value is below 0."""
    ratio_high: float
    """Infinite where the mean is 0 in some draws of the baseline only."""
    verdict: Verdict
    blocks: int

    @property
    def difference(self) -> float:
        """Other - baseline."""
        return self.other - self.baseline


def block_difference(
    baseline: Floats, other: Floats, blocks: Sequence[Hashable]
) -> BlockDifference:
    """Compare the means of two values of the same jobs, which lie in these blocks (days, say)."""
    names, index = np.unique(np.asarray(blocks), return_inverse=True)
    count = len(names)
    means = float(np.mean(baseline)), float(np.mean(other))
    if np.array_equal(baseline, other):
        return BlockDifference(*means, 0.0, 0.0, 1.0, 1.0, Verdict.IDENTICAL, count)
    if count < LEAST_REPLICATES:
        none = math.nan
        return BlockDifference(*means, none, none, none, none, Verdict.TOO_FEW, count)
    weights = stream(0, "block-bootstrap").multinomial(count, [1 / count] * count, size=DRAWS)
    before, after = (weights @ np.bincount(index, weights=x) for x in (baseline, other))
    ends = _expanded(count)
    low, high = _quantiles((after - before) / (weights @ np.bincount(index)), ends)
    ratios = math.nan, math.nan
    if min(np.min(baseline), np.min(other)) >= 0:
        # A draw without any waits has a ratio of 1.
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = _quantiles(np.where(after == before, 1.0, after / before), ends)
    verdict = Verdict.UNDECIDED
    if low > 0 or high < 0:
        verdict = Verdict.MORE if low > 0 else Verdict.LESS
    return BlockDifference(*means, low, high, *ratios, verdict, count)


def _quantiles(drawn: Floats, ends: tuple[float, float]) -> tuple[float, float]:
    """The ends of an interval, at drawn values and not between them.

    So the intervals of difference and ratio come from the same draws: both exclude no change, or
    neither does.
    """
    low, high = np.quantile(drawn, ends, method="nearest")
    return float(low), float(high)


def _expanded(count: int) -> tuple[float, float]:
    """The quantiles whose distance is right for so few blocks."""
    reach = t_quantile(0.95, count - 1) * math.sqrt(count / (count - 1))
    below = NormalDist().cdf(-reach)
    return below, 1 - below
