"""Which policy is best on which metric, and whether that may be noise.

The best policy of a setting is picked from the data. So all pairs of policies are compared, on all
metrics and in all settings, and the verdicts hold together (Holm). A sentence claims no more than
the verdicts of its pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from artist.report.grouping import Replicate, Setting, Study
from artist.results.compare_values import (
    IDENTICAL,
    LESS,
    MORE,
    NO_DIFFERENCE,
    TOO_FEW,
    UNDECIDED,
    ComparedValues,
    clusters_of,
    compare_values,
    holm,
    kind_of,
    what_would_decide,
)

METRICS = {
    "jct_mean_s": "Average JCT",
    "makespan_s": "Makespan",
    "queue_delay_p95_s": "P95 queueing delay",
    "comm_time_mean_s": "Communication per job",
}
"""The metrics of the verdict; less is better."""


@dataclass(frozen=True, slots=True)
class Best:
    """The policy with the least mean of a metric in a setting, and how sure that is."""

    setting: Setting
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

    def with_verdict(self, *verdicts: str) -> list[str]:
        """The other policies that got one of these verdicts."""
        return [policy for policy, one in self.others.items() if one.verdict in verdicts]

    @property
    def surely(self) -> bool:
        """Whether every other policy has surely more."""
        return bool(self.others) and len(self.with_verdict(MORE)) == len(self.others)


@dataclass(frozen=True, slots=True)
class _Pair:
    setting: Setting
    metric: str
    base: str
    other: str


def bests(study: Study) -> list[Best]:
    """The best policies of each setting with several policies that share replicates."""
    settings = [s for s in study.settings if len(s.runs) > 1 and shared_replicates(s)]
    pairs = [
        _Pair(setting, metric, base, other)
        for setting in settings
        for metric in METRICS
        for base, other in combinations(setting.runs, 2)
    ]
    judged = holm([_compared(pair) for pair in pairs])
    verdicts = {
        (pair.setting.index, pair.metric, pair.base, pair.other): one
        for pair, one in zip(pairs, judged, strict=True)
    }
    return [_best(setting, metric, verdicts) for metric in METRICS for setting in settings]


def shared_replicates(setting: Setting) -> list[Replicate]:
    """The replicates that all policies of a setting have."""
    return sorted(set.intersection(*(set(replicates) for replicates in setting.runs.values())))


def _values(setting: Setting, policy: str, metric: str) -> list[float]:
    return [setting.runs[policy][key].metric(metric) for key in shared_replicates(setting)]


def _compared(pair: _Pair) -> ComparedValues:
    base = _values(pair.setting, pair.base, pair.metric)
    other = _values(pair.setting, pair.other, pair.metric)
    return compare_values(base, other, clusters_of(shared_replicates(pair.setting)))


def _best(
    setting: Setting, metric: str, verdicts: Mapping[tuple[int, str, str, str], ComparedValues]
) -> Best:
    means = {p: float(np.mean(_values(setting, p, metric))) for p in setting.runs}
    first = min(means, key=lambda policy: means[policy])

    def against(other: str) -> ComparedValues:
        one = verdicts.get((setting.index, metric, first, other))
        return one or _turned(verdicts[setting.index, metric, other, first])

    others = {policy: against(policy) for policy in setting.runs if policy != first}
    ties = [policy for policy, one in others.items() if one.verdict == IDENTICAL]
    worse = [means[policy] for policy in others if policy not in ties]
    return Best(
        setting, metric, (first, *ties), means[first], min(worse, default=means[first]),
        {policy: one for policy, one in others.items() if policy not in ties},
        kind_of(shared_replicates(setting)),
    )  # fmt: skip


def _turned(one: ComparedValues) -> ComparedValues:
    """The same comparison with the two policies exchanged: only its verdict is used."""
    return replace(one, verdict={LESS: MORE, MORE: LESS}.get(one.verdict, one.verdict))


def certainty(best: Best) -> Iterator[str]:
    """What the verdicts of the pairs say, as parts of a sentence."""
    surely = best.with_verdict(MORE)
    if best.surely:
        yield "surely lower than every other policy"
    elif surely:
        yield f"surely lower than {listed(surely)}"
    if equal := best.with_verdict(NO_DIFFERENCE):
        yield f"no difference beyond 2 % from {listed(equal)}"
    for policy in best.with_verdict(UNDECIDED, LESS):
        # `less` beside a lower mean: geometric and arithmetic means rank the two differently.
        yield f"undecided against {policy}" + _more(best.others[policy], best.kind)
    if few := best.with_verdict(TOO_FEW):
        every = len(few) == len(best.others)
        yield f"may be noise{'' if every else f' against {listed(few)}'}"


def _more(one: ComparedValues, kind: str) -> str:
    words = what_would_decide(one, kind)
    return f" ({words})" if words else ""


def listed(names: Sequence[str]) -> str:
    """The names as a part of a sentence: `a, b and c`."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
