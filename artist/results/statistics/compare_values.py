"""Is one policy better than another? Paired values, their ratio, its interval and a verdict.

Two policies run on the same **replicates**, so their values are pairs. Times differ by factors, so
a difference is a ratio. With d_i = log(other_i / baseline_i) over n independent replicates,

    ratio    = exp(mean d)                                         (geometric mean)
    interval = exp(mean d -+ t(level, n - 1) x sd(d) / sqrt(n))    (Student's t)

Exchanging the two policies turns the ratio into its inverse and keeps the verdict. Where a value is
zero there is no ratio: then d_i = other_i - baseline_i, and the interval is in the values' unit.

Pairs of one **cluster** (permutations of one drawn trace, say) are not independent. They become one
replicate, the mean of their d_i. Replicates are **copies** of one if neither policy's values vary,
rounding aside: they carry no more information than one. If the values vary but their ratio does
not, they are not copies: the interval has no width.

**Assumption**: the d_i are nearly symmetric. Two policies on equal terms have symmetric d_i,
whatever their values' distribution: each is as likely to be the larger one. A true difference may
be skewed.
With d_i = 0.3 x (Exp(1) - 1), of mean 0, 11.7, 10.6 and 8.1 % of single comparisons say `less` or
`more` at n = 5, 8 and 20, instead of 5 % (`tests/results/test_compare_values.py`). Then read the
interval of few replicates with care, and ask for more.

| verdict | when |
|---|---|
| `identical` | all pairs are equal, rounding aside |
| `too few replicates` | fewer than five independent ones, or copies of one |
| `less`, `more` | the interval does not contain a ratio of 1 (a difference of 0) |
| `no difference` | the interval of level 2 x level - 1 lies within 2 % (two one-sided tests) |
| `undecided` | none of these; more replicates may decide |
| `other jobs` | not judged: some runs cancelled jobs, so the values are of other jobs |

`holm.py` makes `less` and `more` hold together over many comparisons. `no difference` is a verdict
on each comparison alone, with an error of 1 - level each.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from artist.results.statistics.chance_to_decide import Open
from artist.results.statistics.paired_input import (
    ROUNDING,
    Floats,
    checked_pairs,
    do_not_vary,
    per_cluster,
    spread_within,
)
from artist.results.statistics.students_t import t_probability, t_quantile

LEAST_REPLICATES = 5
"""With fewer, Student's interval is so wide and so dependent on normality that it says nothing."""

MOST_REPLICATES = 10_000
"""A larger number is never given: it would be too many runs."""

EQUIVALENCE = 0.02
"""Policies that differ by less than this share are called equal: an operator would not notice."""


class Verdict(StrEnum):
    """What a comparison says; the table above says when."""

    IDENTICAL = "identical"
    TOO_FEW = "too few replicates"
    LESS = "less"
    MORE = "more"
    NO_DIFFERENCE = "no difference"
    UNDECIDED = "undecided"
    OTHER_JOBS = "other jobs"


IDENTICAL, TOO_FEW, LESS, MORE, NO_DIFFERENCE, UNDECIDED, OTHER_JOBS = Verdict

PERMUTATIONS = "permutations"
"""What independent replicates are where all have one seed."""


@dataclass(frozen=True, slots=True)
class ComparedValues:
    """The outcome of `compare_values`."""

    ratio: float
    """other / baseline; NaN where a value is zero or below."""
    difference: float
    """Mean of other - baseline, in the unit of the values."""
    low: float
    """Lower end of the interval: of the ratio, or of the difference where there is no ratio. NaN
    with fewer than two replicates. Ends beyond the range of floats are 0 and infinity."""
    high: float
    verdict: Verdict
    replicates: int
    """Independent replicates: clusters, or pairs. 1: all are copies of one."""
    p_value: float
    """Probability of such a mean without any difference; 1 where there is no verdict."""
    open: Open | None
    """What an `undecided` verdict lacks; None: nothing is to decide, or there is no scatter."""
    joint_low: float = math.nan
    """Lower end of the interval that agrees with a verdict given together with others (`holm.py`).
    NaN where there is no verdict, or none was given so."""
    joint_high: float = math.nan
    level: float = 0.95
    """Level of the interval and of the verdict."""

    @property
    def enough(self) -> int | None:
        """The fewest independent replicates that decide with a chance of 80 %, if the true
        difference and scatter are those of these (`chance_to_decide.py`).

        None: there is nothing to decide, or where the verdict is `undecided`, more than
        `MOST_REPLICATES`.
        """
        return self.open.enough(MOST_REPLICATES) if self.open else None

    @property
    def soonest(self) -> int | None:
        """As `enough`, but if the mean and the deviation stay exactly the same."""
        return self.open.soonest(MOST_REPLICATES) if self.open else None


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
        ConfigError: the sequences differ in length or are empty, or are not sequences of numbers;
            a value is not finite or beyond 1e300; a cluster is not hashable; the level is not
            above 0.5 and below 1; or the equivalence is not a share.
    """
    base, values = checked_pairs(baseline, other, clusters, level, equivalence)
    difference = float((values - base).mean())
    has_ratio = bool((base > 0).all() and (values > 0).all())
    # Logarithms are subtracted, since a quotient of floats may overflow.
    pairs = np.log(values) - np.log(base) if has_ratio else values - base
    steps = per_cluster(pairs, clusters)
    if np.allclose(base, values, rtol=ROUNDING, atol=0.0):
        bound = 1.0 if has_ratio else 0.0
        equal_ratio = 1.0 if has_ratio else math.nan
        return ComparedValues(
            equal_ratio, 0.0, bound, bound, IDENTICAL, len(steps), 1.0, None, level=level
        )
    copies = all(do_not_vary(per_cluster(column, clusters)) for column in (base, values))
    # Rounding moves a logarithm by a share of 1, and a difference by a share of the values.
    size = 1.0 if has_ratio else float(max(np.abs(base).max(), np.abs(values).max()))
    sample = _sample(steps, 1 if copies else len(steps), size)
    low, high = sample.interval(level) if sample.size > 1 else (math.nan, math.nan)
    p_value = 1.0
    verdict = TOO_FEW
    if sample.size >= LEAST_REPLICATES:
        p_value = sample.p_value()
        verdict = _verdict(sample, p_value, level, equivalence if has_ratio else 0.0)
    ratio = _exp(sample.mean) if has_ratio else math.nan
    if has_ratio:
        low, high = _exp(low), _exp(high)
    compared = ComparedValues(
        ratio, difference, low, high, verdict, sample.size, p_value, None, level=level
    )
    return with_open(compared, level, level, equivalence) if verdict == UNDECIDED else compared


def unjudged(compared: ComparedValues) -> ComparedValues:
    """The same ratio without an interval and a verdict, since the values are of other jobs."""
    return replace(
        compared, low=math.nan, high=math.nan, verdict=OTHER_JOBS, p_value=1.0, open=None
    )


def clusters_of(replicates: Sequence[tuple[int, int]]) -> list[int] | None:
    """The clusters of replicates (seed, permutation): the seeds, if there are several.

    Permutations of one drawn trace share its jobs, so they are not independent. None: all
    replicates have one seed, and each permutation is independent of the others.
    """
    seeds = [seed for seed, _ in replicates]
    return seeds if len(set(seeds)) > 1 else None


def kind_of(replicates: Sequence[tuple[int, int]]) -> str:
    """What independent replicates (seed, permutation) are, in words: seeds if there are several."""
    return PERMUTATIONS if clusters_of(replicates) is None else "seeds"


def sure_but_within(compared: ComparedValues, equivalence: float) -> bool:
    """Whether a verdict is `less` or `more`, and the difference surely smaller than `equivalence`.

    A reader should then learn both: which one has less, and that it hardly matters.
    """
    return compared.verdict in (LESS, MORE) and is_within(compared, compared.level, equivalence)


def is_exact(compared: ComparedValues, kind: str, count: int) -> bool:
    """Whether `count` permutations, enough for a verdict, all give the same two values.

    Then the order of visiting has no effect on this trace, and the difference is not noise of it.
    """
    copies = compared.verdict == TOO_FEW and compared.replicates == 1
    return copies and kind == PERMUTATIONS and count >= LEAST_REPLICATES


@dataclass(frozen=True, slots=True)
class _Sample:
    """Statistics of independent steps, on which the tests are based."""

    mean: float
    deviation: float
    """Sample standard deviation; 0: they do not vary, rounding aside."""
    size: int
    """Independent replicates."""

    def interval(self, level: float) -> tuple[float, float]:
        """Student's interval of the mean."""
        reach = t_quantile(level, self.size - 1) * self.deviation / math.sqrt(self.size)
        return self.mean - reach, self.mean + reach

    def p_value(self) -> float:
        """The probability of such a mean, or of one farther from 0, where the true one is 0."""
        error = self.deviation / math.sqrt(self.size)
        if not error:
            return 0.0 if self.mean else 1.0
        t = self.mean / error
        return max(0.0, 1 - t_probability(abs(t), self.size - 1))


def _sample(steps: Floats, count: int, size: float) -> _Sample:
    """The sample of some steps, whose rounding is a share `ROUNDING` of `size`."""
    if count < 2 or spread_within(steps, size):
        return _Sample(float(steps.mean()), 0.0, count)
    with np.errstate(over="ignore"):  # huge deviations become infinite: an interval without ends
        return _Sample(float(steps.mean()), float(steps.std(ddof=1)), count)


def _verdict(sample: _Sample, p_value: float, level: float, equivalence: float) -> Verdict:
    if p_value <= 1 - level:
        return LESS if sample.mean < 0 else MORE
    low, high = sample.interval(2 * level - 1)
    # Symmetric in the two policies: a ratio of 1.02 is as far from 1 as one of 1 / 1.02.
    margin = math.log1p(equivalence)
    return NO_DIFFERENCE if -margin < low and high < margin else UNDECIDED


def is_within(compared: ComparedValues, level: float, equivalence: float) -> bool:
    """Whether both one-sided tests of a difference larger than `equivalence` are passed."""
    if math.isnan(compared.ratio):
        return False
    mean, reach = middle_and_reach(compared)
    degrees = compared.replicates - 1
    reach *= t_quantile(2 * level - 1, degrees) / t_quantile(level, degrees)
    return abs(mean) + reach < math.log1p(equivalence)


def with_joint_interval(
    compared: ComparedValues, level: float, joint_level: float
) -> ComparedValues:
    """The comparison with a joint interval of `joint_level`; its own interval has `level`."""
    if joint_level == level:
        return replace(compared, joint_low=compared.low, joint_high=compared.high)
    mean, reach = middle_and_reach(compared)
    degrees = compared.replicates - 1
    reach *= t_quantile(joint_level, degrees) / t_quantile(level, degrees)
    low, high = mean - reach, mean + reach
    if not math.isnan(compared.ratio):
        low, high = _exp(low), _exp(high)
    return replace(compared, joint_low=low, joint_high=high)


def with_open(
    compared: ComparedValues, level: float, differ_level: float, equivalence: float
) -> ComparedValues:
    """The comparison with what an open verdict lacks; its interval has `level`."""
    mean, reach = middle_and_reach(compared)
    margin = 0.0 if math.isnan(compared.ratio) else math.log1p(equivalence)
    count = compared.replicates
    deviation = reach * math.sqrt(count) / t_quantile(level, count - 1)
    if not 0 < deviation < math.inf:
        return compared
    open_ = Open(mean, deviation, count, margin, differ_level, 2 * level - 1)
    return replace(compared, open=open_)


def middle_and_reach(compared: ComparedValues) -> tuple[float, float]:
    """Middle and half the length of an interval, of logarithms where there is a ratio.

    The reach is infinite where both ends are beyond the range of floats.
    """
    low, high = compared.low, compared.high
    if math.isnan(compared.ratio):
        return (low + high) / 2, (high - low) / 2
    middle = _log(compared.ratio)
    reach = _log(high) - middle if math.isfinite(high) else middle - _log(low)
    return middle, reach


def _exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def _log(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf
