"""Is one policy better than another? Paired values, their ratio, its interval and a verdict.

Two policies run on the same **replicates**, so their values are pairs. Times differ by factors, so
a difference is a ratio. With d_i = log(other_i / baseline_i) over n independent replicates,

    ratio    = exp(mean d)                                         (geometric mean)
    interval = exp(mean d -+ t(level, n - 1) x sd(d) / sqrt(n))    (Student's t)

Exchanging the two policies turns the ratio into its inverse and keeps the verdict. Where a value is
zero there is no ratio: then d_i = other_i - baseline_i, and the interval is in the values' unit.

Pairs of one **cluster** (permutations of one drawn trace, say) are not independent. They become one
replicate, the mean of their d_i.

| verdict | when |
|---|---|
| `identical` | all pairs are equal, rounding aside |
| `too few replicates` | fewer than five independent ones, or copies of one |
| `less`, `more` | the interval does not contain a ratio of 1 (a difference of 0) |
| `no difference` | the interval of level 2 x level - 1 lies within 2 % (two one-sided tests) |
| `undecided` | none of these; more replicates would decide |
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import numpy.typing as npt

from artist.errors import ConfigError

LEAST_REPLICATES = 5
"""With fewer, Student's interval is so wide and so dependent on normality that it says nothing."""

MOST_REPLICATES = 10_000
"""No number beyond it is named: nobody would run so many."""

EQUIVALENCE = 0.02
"""Policies that differ by less than this share are called equal: an operator would not notice."""

ROUNDING = 1e-12
"""Relative difference of two sums of the same terms in another order; no policy's doing."""

IDENTICAL, TOO_FEW, LESS, MORE = "identical", "too few replicates", "less", "more"
NO_DIFFERENCE, UNDECIDED = "no difference", "undecided"


@dataclass(frozen=True, slots=True)
class ComparedValues:
    """The outcome of `compare_values`."""

    ratio: float
    """other / baseline; NaN where a value is zero or below."""
    difference: float
    """Mean of other - baseline, in the unit of the values."""
    low: float
    """Lower end of the interval: of the ratio, or of the difference where there is no ratio. NaN
    with fewer than two replicates."""
    high: float
    verdict: str
    replicates: int
    """Independent replicates: clusters, or pairs."""
    p_value: float
    """Probability of such a mean without any difference; 1 where there is no verdict."""
    enough: int | None
    """Independent replicates that would decide, if they vary as these do. None where that cannot
    be told, or there is nothing to decide."""


def compare_values(
    baseline: Sequence[float],
    other: Sequence[float],
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
    *,
    equivalence: float = EQUIVALENCE,
) -> ComparedValues:
    """Compare paired values of two policies. See the module's text for the method.

    `clusters` gives each pair the name of its cluster; without it all pairs are independent.

    Raises:
        ConfigError: the sequences differ in length or are empty, a value is not finite, the level
            is not between 0 and 1, or the equivalence is no share.
    """
    base, values = _checked(baseline, other, clusters, level, equivalence)
    difference = float((values - base).mean())
    has_ratio = bool((base > 0).all() and (values > 0).all())
    steps = _per_cluster(np.log(values / base) if has_ratio else values - base, clusters)
    ratio = math.exp(float(steps.mean())) if has_ratio else math.nan
    if np.allclose(base, values, rtol=ROUNDING, atol=0.0):
        bound = 1.0 if has_ratio else 0.0
        equal_ratio = 1.0 if has_ratio else math.nan
        return ComparedValues(equal_ratio, 0.0, bound, bound, IDENTICAL, len(steps), 1.0, None)
    count = 1 if np.ptp(steps) == 0 else len(steps)  # copies of one replicate tell no more than it
    low, high = _interval(steps, level) if count > 1 else (math.nan, math.nan)
    p_value = 1.0
    verdict = TOO_FEW
    if count >= LEAST_REPLICATES:
        p_value = _p_value(steps)
        verdict = _verdict(steps, p_value, level, equivalence if has_ratio else 0.0)
    if has_ratio:
        low, high = math.exp(low), math.exp(high)
    compared = ComparedValues(ratio, difference, low, high, verdict, count, p_value, None)
    return _with_enough(compared, level, level, equivalence) if verdict == UNDECIDED else compared


def holm(
    compared: Sequence[ComparedValues], level: float = 0.95, equivalence: float = EQUIVALENCE
) -> list[ComparedValues]:
    """The same comparisons with verdicts that hold together: Holm's method over their p-values.

    A `less` or `more` that does not pass becomes `undecided`, or `no difference` if it passes that
    test. So the chance of one false `less` or `more` among all of them is at most 1 - level. What
    is undecided says how many replicates would pass here. `level` and `equivalence` are those of
    the comparisons. Source: Holm, *A simple sequentially rejective multiple test procedure*,
    Scandinavian Journal of Statistics, 1979.
    """
    corrected = list(compared)
    judged = [index for index, one in enumerate(compared) if one.verdict != IDENTICAL]
    passing = True
    for rank, index in enumerate(sorted(judged, key=lambda index: compared[index].p_value)):
        one, error = compared[index], (1 - level) / (len(judged) - rank)
        passing = passing and one.p_value <= error
        if not passing and one.verdict in (LESS, MORE) and _within(one, level, equivalence):
            corrected[index] = replace(one, verdict=NO_DIFFERENCE)
        elif not passing and one.verdict in (LESS, MORE, UNDECIDED):
            open_ = replace(one, verdict=UNDECIDED)
            corrected[index] = _with_enough(open_, level, 1 - error, equivalence)
    return corrected


def clusters_of(replicates: Sequence[tuple[int, int]]) -> list[int] | None:
    """The clusters of replicates (seed, permutation): the seeds, if there are several.

    Permutations of one drawn trace share its jobs, so they are not independent. None: all
    replicates have one seed, and each permutation is independent of the others.
    """
    seeds = [seed for seed, _ in replicates]
    return seeds if len(set(seeds)) > 1 else None


def mean_interval(
    values: Sequence[float], clusters: Sequence[Hashable] | None = None, level: float = 0.95
) -> tuple[float, float]:
    """Student's interval of the mean of independent values, or of clusters of equal size.

    NaN with fewer than `LEAST_REPLICATES` of them, and for copies of one: then there is none.
    """
    steps = _per_cluster(np.array(values, np.float64), clusters)
    if len(steps) < LEAST_REPLICATES or np.ptp(steps) == 0:
        return math.nan, math.nan
    return _interval(steps, level)


def _checked(
    baseline: Sequence[float],
    other: Sequence[float],
    clusters: Sequence[Hashable] | None,
    level: float,
    equivalence: float,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    lengths = [len(baseline), len(other), *([] if clusters is None else [len(clusters)])]
    if len(set(lengths)) != 1 or not lengths[0]:
        raise ConfigError(f"compare_values: {lengths} values, expected as many of each, at least 1")
    if not 0 < level < 1:
        raise ConfigError(f"compare_values: level {level}, expected a number between 0 and 1")
    if not 0 <= equivalence < 1:
        raise ConfigError(
            f"compare_values: equivalence {equivalence}, expected a share from 0 to below 1"
        )
    base, values = np.array(baseline, np.float64), np.array(other, np.float64)
    if not (np.isfinite(base).all() and np.isfinite(values).all()):
        raise ConfigError("compare_values: a value is not finite; leave out runs without a result")
    return base, values


def _per_cluster(
    steps: npt.NDArray[np.float64], clusters: Sequence[Hashable] | None
) -> npt.NDArray[np.float64]:
    """The mean of each cluster, in the order of their first pair."""
    if clusters is None:
        return steps
    members: dict[Hashable, list[float]] = {}
    for cluster, step in zip(clusters, steps.tolist(), strict=True):
        members.setdefault(cluster, []).append(step)
    return np.array([math.fsum(part) / len(part) for part in members.values()])


def _verdict(
    steps: npt.NDArray[np.float64], p_value: float, level: float, equivalence: float
) -> str:
    if p_value <= 1 - level:
        return LESS if steps.mean() < 0 else MORE
    low, high = _interval(steps, 2 * level - 1)
    # Symmetric in the two policies: a ratio of 1.02 is as far from 1 as one of 1 / 1.02.
    margin = math.log1p(equivalence)
    return NO_DIFFERENCE if -margin < low and high < margin else UNDECIDED


def _within(compared: ComparedValues, level: float, equivalence: float) -> bool:
    """Whether both one-sided tests of a difference larger than `equivalence` are passed."""
    if math.isnan(compared.ratio):
        return False
    mean, reach = _middle_and_reach(compared)
    degrees = compared.replicates - 1
    reach *= t_quantile(2 * level - 1, degrees) / t_quantile(level, degrees)
    return abs(mean) + reach < math.log1p(equivalence)


def _with_enough(
    compared: ComparedValues, level: float, differ_level: float, equivalence: float
) -> ComparedValues:
    """The same with the number of replicates that would decide; `level` is that of its interval."""
    mean, reach = _middle_and_reach(compared)
    margin = 0.0 if math.isnan(compared.ratio) else math.log1p(equivalence)
    count = compared.replicates
    deviation = reach * math.sqrt(count) / t_quantile(level, count - 1)
    return replace(
        compared, enough=_enough(count, abs(mean), deviation, level, differ_level, margin)
    )


def _middle_and_reach(compared: ComparedValues) -> tuple[float, float]:
    """Middle and half the length of an interval, of logarithms where there is a ratio."""
    low, high = compared.low, compared.high
    if not math.isnan(compared.ratio):
        low, high = math.log(low), math.log(high)
    return (low + high) / 2, (high - low) / 2


def _enough(
    count: int, mean: float, deviation: float, level: float, differ_level: float, margin: float
) -> int | None:
    """The number of replicates at which one of the two tests of `_verdict` would pass."""
    while count < MOST_REPLICATES:
        count += max(1, count // 20)  # to five percent: the deviation is not known better
        scale = deviation / math.sqrt(count)
        differ = t_quantile(differ_level, count - 1) * scale < mean
        if differ or mean + t_quantile(2 * level - 1, count - 1) * scale < margin:
            return count
    return None


def _interval(steps: npt.NDArray[np.float64], level: float) -> tuple[float, float]:
    count = len(steps)
    reach = t_quantile(level, count - 1) * float(steps.std(ddof=1)) / math.sqrt(count)
    return float(steps.mean()) - reach, float(steps.mean()) + reach


def _p_value(steps: npt.NDArray[np.float64]) -> float:
    count = len(steps)
    t = float(steps.mean()) / (float(steps.std(ddof=1)) / math.sqrt(count))
    return 1 - t_probability(abs(t), count - 1)


def t_probability(t: float, degrees: int) -> float:
    """P(|T| <= t) of Student's t with a whole number of degrees of freedom.

    Source: Abramowitz and Stegun, *Handbook of Mathematical Functions*, 26.7.3 and 26.7.4.
    """
    angle = math.atan(t / math.sqrt(degrees))
    sine, square = math.sin(angle), math.cos(angle) ** 2
    odd = degrees % 2
    term = math.cos(angle) if odd else 1.0
    terms = [term] if degrees > 1 else []
    for k in range(2 + odd, degrees, 2):
        term *= square * (k - 1) / k
        terms.append(term)
    total = sine * math.fsum(terms)
    return 2 / math.pi * (angle + total) if odd else total


@cache
def t_quantile(level: float, degrees: int) -> float:
    """The t with P(|T| <= t) = level, by bisection."""
    low, high = 0.0, 1.0
    while t_probability(high, degrees) < level:
        high *= 2
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        if t_probability(middle, degrees) < level:
            low = middle
        else:
            high = middle
    return high
