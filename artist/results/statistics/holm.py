"""Verdicts of many comparisons that hold together: Holm's correction, and its families."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

from artist.results.statistics.compare_values import (
    EQUIVALENCE,
    IDENTICAL,
    LESS,
    MORE,
    NO_DIFFERENCE,
    OTHER_JOBS,
    TOO_FEW,
    UNDECIDED,
    ComparedValues,
    clusters_of,
    compare_values,
    is_within,
    unjudged,
    with_joint_interval,
    with_open,
)

K = TypeVar("K")

UNTESTED = (IDENTICAL, TOO_FEW, OTHER_JOBS)
"""Verdicts that no test has judged."""


class Pair(NamedTuple):
    """The values of two policies on the same replicates."""

    baseline: Sequence[float]
    other: Sequence[float]
    replicates: Sequence[tuple[int, int]]
    """(seed, permutation) of each value."""


def compare_together(
    pairs: Mapping[K, Pair],
    equivalence: float = EQUIVALENCE,
    level: float = 0.95,
    *,
    same_jobs: bool = True,
) -> dict[K, ComparedValues]:
    """All comparisons of one **family**: each pair alone, and then all verdicts together (`holm`).

    A question asked at once is a family: `artist compare` asks about all variants against the
    baseline on all metrics, the best policy about all pairs. Each output says what its family is.
    Without `same_jobs` there are no tests: values of different jobs say nothing about a policy.
    """
    single = [
        compare_values(*pair[:2], clusters_of(pair.replicates), level, equivalence=equivalence)
        for pair in pairs.values()
    ]
    judged = holm(single, level, equivalence) if same_jobs else map(unjudged, single)
    return dict(zip(pairs, judged, strict=True))


def holm(
    compared: Sequence[ComparedValues], level: float = 0.95, equivalence: float = EQUIVALENCE
) -> list[ComparedValues]:
    """The same comparisons with verdicts that hold together: Holm's method over their p-values.

    A `less` or `more` that does not pass becomes `undecided`, or `no difference` if it passes that
    test. So the chance of one false `less` or `more` among all of them is at most 1 - level. A
    `no difference` stays as it is. An undecided comparison says how many replicates it needs to
    pass at the level of the first that did not pass, while the others stay as they are. `level` and
    `equivalence` are those of the comparisons. Comparisons without a test, `identical` and `too few
    replicates`, are not in the family.

    The **joint interval** of each comparison has the level at which the first one did not pass. So
    it excludes a ratio of 1 (a difference of 0) where the verdict is `less` or `more`, and only
    there. Those that are not `less` or `more` cover the true values together with probability
    `level` (Strassburger and Bretz, *Compatible simultaneous lower confidence bounds for the Holm
    procedure*, Statistics in Medicine, 2008).

    Source: Holm, *A simple sequentially rejective multiple test procedure*, Scandinavian Journal of
    Statistics, 1979.
    """
    corrected = list(compared)
    judged = [index for index, one in enumerate(compared) if one.verdict not in UNTESTED]
    passing, joint_level = True, level
    for rank, index in enumerate(sorted(judged, key=lambda index: compared[index].p_value)):
        one, error = compared[index], (1 - level) / (len(judged) - rank)
        if passing and one.p_value > error:
            passing, joint_level = False, 1 - error
        if not passing and one.verdict in (LESS, MORE) and is_within(one, level, equivalence):
            corrected[index] = replace(one, verdict=NO_DIFFERENCE)
        elif not passing and one.verdict != NO_DIFFERENCE:
            open_ = replace(one, verdict=UNDECIDED)
            corrected[index] = with_open(open_, level, joint_level, equivalence)
    for index in judged:
        corrected[index] = with_joint_interval(corrected[index], level, joint_level)
    return corrected


def adjusted_p_values(compared: Sequence[ComparedValues]) -> list[float]:
    """Holm's adjusted p-values: `less` and `more` are those of at most 1 - level.

    1 for comparisons that no test judges.
    """
    adjusted = [1.0] * len(compared)
    judged = [index for index, one in enumerate(compared) if one.verdict not in UNTESTED]
    largest = 0.0
    for rank, index in enumerate(sorted(judged, key=lambda index: compared[index].p_value)):
        largest = max(largest, min(1.0, (len(judged) - rank) * compared[index].p_value))
        adjusted[index] = largest
    return adjusted


def undecided_together(compared: ComparedValues) -> bool:
    """Whether a comparison is undecided only since it is judged together with others.

    Its own interval does not contain a ratio of 1, or a difference of 0.
    """
    same = 0.0 if math.isnan(compared.ratio) else 1.0
    return compared.verdict == UNDECIDED and not compared.low <= same <= compared.high


def judged_together(compared: Iterable[ComparedValues]) -> int:
    """How many comparisons are in Holm's family."""
    return sum(one.verdict not in UNTESTED for one in compared)
