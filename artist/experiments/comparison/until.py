"""When does a comparison have enough replicates? When its intervals are narrow, or it is decided.

A comparison is **decided** if no pair is undecided. Looking at the verdicts again and again, and
stopping when one is significant, finds a difference in the end, even if there is none. So the looks
are fixed beforehand (`looks`) and share the error: each of n looks judges at 0.05 / n (Bonferroni).
Looks that can decide nothing with the deviations so far are skipped; that costs no error.

Intervals are **narrow** if their half-width is at most the one asked for. A budget may end the
comparison earlier.

The **half-width** of an interval says how far its ends are from its middle:

    of a ratio       sqrt(high / low) - 1: 0.02 if the ends are the middle x 1.02 and / 1.02
    of a difference  (high - low) / 2 / the larger of the two policies' means

`next_count` uses half-widths only, and not the differences, for the same reason. For normal values
the mean and the standard deviation of a sample are independent (Geary, JRSS Supplement, 1936). So a
rule that depends on the deviation alone does not bias the ratios.

The error level changes a little: the rule tends to stop when the deviation is too small by chance,
and then the interval is too short (Starr, Annals of Mathematical Statistics, 1966). Three things
keep that effect small: a first look at `FIRST_LOOK` replicates, few looks (each with at least a
quarter more), and the verdicts' joint level. Under the null hypothesis, with five metrics, false
verdicts stay below 6 % (`tests/experiments/test_until.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from artist.results.statistics.compare_values import (
    IDENTICAL,
    MOST_REPLICATES,
    UNDECIDED,
    ComparedValues,
    middle_and_reach,
)
from artist.results.statistics.students_t import least_count, t_quantile

FIRST_LOOK = 8
"""Independent replicates before the first look. With 5 of them up to 5.9 % of families had a false
verdict, with 8 up to 5.4 % (30,000 families of five normal metrics, one wider than the others)."""

BUDGET = 100
"""Independent replicates at most. They give a half-width of about 2 % if the logarithms of ratios
have a standard deviation of 10 %: 1.984 x 0.1 / sqrt(100) = .01984, and log(1.02) = .01980."""

LONGEST_REACH = 700.0
"""If half an interval of logarithms is longer, the half-width would overflow a float."""

LEAST_GROWTH, MOST_GROWTH = 1.25, 2.0
"""Growth of the count from look to look; at most 2, since few replicates give a rough deviation."""

DECIDED: Final = "decided"
"""The value of `until` that asks for decisions in place of a half-width."""


def looks(first: int, budget: int) -> list[int]:
    """The counts of independent replicates at which to look: each time twice as many."""
    counts = [first]
    while counts[-1] < budget:
        counts.append(min(2 * counts[-1], budget))
    return counts


def level_of(looks: Sequence[int]) -> float:
    """The level of each look, so that all of them together err in 5 % of cases."""
    return 1 - 0.05 / len(looks)


def may_decide(differences: Iterable[ComparedValues], budget: int) -> bool:
    """Whether `budget` replicates decide an undecided pair, if its mean and deviation stay."""
    return any(
        one.verdict == UNDECIDED and one.soonest is not None and one.soonest <= budget
        for one in differences
    )


def half_width(
    baseline: Sequence[float], other: Sequence[float], compared: ComparedValues
) -> float:
    """The half-width of a comparison of these values; 0 if all replicates are equal.

    It is also 0 for copies of one replicate, since more of them would change nothing. It is
    infinite if an end is beyond the range of floats, or if both policies have a mean of 0.
    """
    if compared.verdict == IDENTICAL or math.isnan(compared.low):
        return 0.0
    _, reach = middle_and_reach(compared)
    if not math.isnan(compared.ratio):
        return math.expm1(reach) if reach < LONGEST_REACH else math.inf
    largest = max(abs(math.fsum(values)) / len(values) for values in (baseline, other))
    if not reach:
        return 0.0
    return reach / largest if largest else math.inf


def enough_for(count: int, width: float, until: float) -> int | None:
    """Independent replicates that give a 95 % half-width `until`, if `count` of them give `width`.

    None: more than `MOST_REPLICATES`.
    """
    deviation = math.log1p(width) * math.sqrt(count) / t_quantile(0.95, count - 1)

    def narrow(count: int) -> bool:
        reach = t_quantile(0.95, count - 1) * deviation / math.sqrt(count)
        return reach <= math.log1p(until)

    return least_count(count, MOST_REPLICATES, narrow)


def next_count(count: int, widest: float, until: float, budget: int) -> int:
    """How many independent replicates to look at next; `count` itself: these are enough."""
    if widest <= until or count >= budget:
        return count
    wanted = enough_for(count, widest, until) or MOST_REPLICATES
    return min(budget, max(math.ceil(LEAST_GROWTH * count), min(wanted, int(MOST_GROWTH * count))))
