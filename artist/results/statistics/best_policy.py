"""Which policy is best on which metric, and whether that may be noise.

The best policy is picked from the data. So all pairs of policies are compared, on all metrics and
in all settings, and the verdicts hold together (Holm).
`artist.report.verdict_sentences` makes sentences of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from artist.results.statistics.compare_values import (
    EQUIVALENCE,
    IDENTICAL,
    LESS,
    MORE,
    ComparedValues,
    is_exact,
    kind_of,
)
from artist.results.statistics.holm import Pair, compare_together, judged_together


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
    """The policy with the least mean of a metric, and how sure that is."""

    metric: str
    policies: tuple[str, ...]
    """Those that share the least value; usually one."""
    value: float
    next_value: float
    """The least mean of the other policies; the value itself if there is no other."""
    others: Mapping[str, ComparedValues]
    """Each other policy against the first of the best."""
    kind: str
    """What independent replicates are, in words."""
    replicates: int = 0
    """How many replicates there are, copies too."""
    next_policies: tuple[str, ...] = ()
    """Those with the least mean of the other policies."""
    family: int = 0
    """How many comparisons are judged together: pairs of policies on all metrics and settings."""

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
    measured: Sequence[Measured], equivalence: float = EQUIVALENCE, level: float = 0.95
) -> list[Best]:
    """The best policies of each, in the same order; all pairs of all of them are one family."""
    pairs = {
        (index, base, other): Pair(one.values[base], one.values[other], one.replicates)
        for index, one in enumerate(measured)
        for base, other in combinations(one.values, 2)
    }
    verdicts = compare_together(pairs, equivalence, level)
    family = judged_together(verdicts.values())
    return [_best(one, index, verdicts, family) for index, one in enumerate(measured)]


def _best(
    measured: Measured,
    index: int,
    verdicts: Mapping[tuple[int, str, str], ComparedValues],
    family: int,
) -> Best:
    means = {policy: float(np.mean(values)) for policy, values in measured.values.items()}
    first = min(means, key=lambda policy: means[policy])

    def against(other: str) -> ComparedValues:
        one = verdicts.get((index, first, other))
        return one or _turned(verdicts[index, other, first])

    others = {policy: against(policy) for policy in means if policy != first}
    ties = [policy for policy, one in others.items() if one.verdict == IDENTICAL]
    worse = {policy: means[policy] for policy in others if policy not in ties}
    least = min(worse.values(), default=means[first])
    return Best(
        measured.metric, (first, *ties), means[first], least,
        {policy: one for policy, one in others.items() if policy not in ties},
        kind_of(measured.replicates), len(measured.replicates),
        tuple(policy for policy, mean in worse.items() if mean == least), family,
    )  # fmt: skip


def _turned(one: ComparedValues) -> ComparedValues:
    """The same comparison with the two policies exchanged."""
    turn = _negative if math.isnan(one.ratio) else _inverse
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


def _negative(value: float) -> float:
    return -value


def _inverse(value: float) -> float:
    """1 / value; of the ends of a very wide interval, 0 and infinity."""
    return 1 / value if value else math.inf
