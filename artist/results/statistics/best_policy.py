"""Which policy is best on which metric, and whether that may be noise.

The best policy is picked from the data. So all pairs of policies are compared, on all metrics and
in all settings, and the verdicts hold together (Holm).
`artist.report.verdict_sentences` makes sentences of them.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from artist.results.statistics.compare_values import (
    EQUIVALENCE,
    IDENTICAL,
    LESS,
    MORE,
    NO_DIFFERENCE,
    ComparedValues,
    clusters_of,
    is_exact,
    kind_of,
    sure_but_within,
)
from artist.results.statistics.holm import Pair, compare_together, judged_together
from artist.results.statistics.replicate_means import replicate_means


@dataclass(frozen=True, slots=True)
class Measured:
    """One headline metric of several policies on the same replicates."""

    metric: str
    values: Mapping[str, Sequence[float]]
    """Policy -> value on each replicate."""
    replicates: Sequence[tuple[int, int]]
    """(seed, permutation) of each value."""


@dataclass(frozen=True, slots=True)
class Best:
    """The policy with the least mean of a metric, and how sure that is.

    Means are those of `replicate_means.py`, so they agree with the ratios. If efforts are known,
    the best is the policy of least **effort** among those that surely are within the equivalence
    of the least mean.
    """

    metric: str
    policies: tuple[str, ...]
    """The policies that share the least value; usually one."""
    value: float
    others: Mapping[str, ComparedValues]
    """Each other policy, compared with the first of the best."""
    kind: str
    """What independent replicates are, in words."""
    replicates: int = 0
    """How many replicates there are, copies too."""
    next_policies: tuple[str, ...] = ()
    """Those with the least mean of the other policies."""
    family: int = 0
    """How many comparisons are judged together: pairs of policies on all metrics and settings."""
    passed_over: tuple[str, ...] = ()
    """Those with the least mean that take more effort than the first, and hardly differ from it."""

    def below(self, other: str) -> float:
        """The share by which the best one's mean is below another's; it agrees with their ratio."""
        compared = self.others[other]
        if not math.isnan(compared.ratio):
            return 1 - 1 / compared.ratio
        above = self.value + compared.difference
        return compared.difference / above if above > 0 else 0.0

    def with_verdict(self, *verdicts: str) -> list[str]:
        """The other policies that got one of these verdicts."""
        return [policy for policy, one in self.others.items() if one.verdict in verdicts]

    @property
    def exactly(self) -> list[str]:
        """The other policies whose difference no permutation changes."""
        return [
            policy
            for policy, one in self.others.items()
            if is_exact(one, self.kind, self.replicates)
        ]

    @property
    def surely(self) -> bool:
        """Whether every other policy has surely more."""
        return bool(self.others) and len(self.with_verdict(MORE)) == len(self.others)


def bests(
    measured: Sequence[Measured],
    equivalence: float = EQUIVALENCE,
    level: float = 0.95,
    effort: Callable[[str], tuple[float, ...]] = lambda _: (),
) -> list[Best]:
    """The best policies of each, in the same order; all pairs of all of them are one family.

    `effort` ranks policies without a difference: what costs less, or changes less.
    """
    pairs = {
        (index, base, other): Pair(one.values[base], one.values[other], one.replicates)
        for index, one in enumerate(measured)
        for base, other in combinations(one.values, 2)
    }
    verdicts = compare_together(pairs, equivalence, level)
    family = judged_together(verdicts.values())
    return [
        _best(one, index, verdicts, family, equivalence, effort)
        for index, one in enumerate(measured)
    ]


def _best(
    measured: Measured,
    index: int,
    verdicts: Mapping[tuple[int, str, str], ComparedValues],
    family: int,
    equivalence: float,
    effort: Callable[[str], tuple[float, ...]],
) -> Best:
    """The policy that leads by a metric.

    Among the policies that are identical to the one with the least mean, or surely within the
    `equivalence` of it, it is the one with the least `effort`.
    """
    means = replicate_means(measured.values, clusters_of(measured.replicates))

    def against(first: str) -> dict[str, ComparedValues]:
        return {
            other: verdicts.get((index, first, other)) or _turned(verdicts[index, other, first])
            for other in means
            if other != first
        }

    least = min(means, key=lambda policy: means[policy])
    same = [one for one, told in against(least).items() if told.verdict == IDENTICAL]
    near = [
        one
        for one, told in against(least).items()
        if told.verdict == NO_DIFFERENCE or sure_but_within(told, equivalence)
    ]
    all_same = len(same) == len(means) - 1
    first = least if all_same else min((least, *same, *near), key=effort)
    others = against(first)
    passed_over = [one for one in (least, *same) if effort(one) > effort(first)]
    if all_same:
        passed_over = []
    ties = [one for one, told in others.items() if told.verdict == IDENTICAL]
    ties = [one for one in ties if one not in passed_over]
    worse = {one: means[one] for one in others if one not in (*ties, *passed_over)}
    next_value = min(worse.values(), default=means[first])
    return Best(
        measured.metric, (first, *ties), means[first],
        {one: told for one, told in others.items() if one not in ties},
        kind_of(measured.replicates), len(measured.replicates),
        tuple(one for one, mean in worse.items() if mean == next_value), family,
        tuple(passed_over),
    )  # fmt: skip


def _turned(one: ComparedValues) -> ComparedValues:
    """The same comparison with the two policies exchanged."""
    turn = operator.neg if math.isnan(one.ratio) else _inverse
    return replace(
        one,
        ratio=_inverse(one.ratio),
        difference=-one.difference,
        low=turn(one.high),
        high=turn(one.low),
        joint_low=turn(one.joint_high),
        joint_high=turn(one.joint_low),
        verdict={LESS: MORE, MORE: LESS}.get(one.verdict, one.verdict),
    )


def _inverse(value: float) -> float:
    """1 / value; of the ends of a very wide interval, 0 and infinity."""
    return 1 / value if value else math.inf
