"""Verdicts of comparisons as sentences. A sentence claims what its verdict claims, and no more.

    tiresias finishes jobs 12 % sooner than dally on average (JCT mean; 8 to 16 %, 5 replicates)
    las and srtf cannot be told apart from dally (JCT mean; 5 replicates)

Only `less` and `more` give a sentence about better or worse. A difference that is sure and within
the equivalence says both: `sooner, but by less than 2 %`. Percentages and intervals are those of
the ratio, so they agree with the table of a comparison.

`best_sentence` names the best policy of a metric and what the verdicts of all pairs say of it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from artist.results.statistics.best_policy import Best
from artist.results.statistics.compare_values import (
    EQUIVALENCE,
    IDENTICAL,
    LEAST_REPLICATES,
    LESS,
    MORE,
    MOST_REPLICATES,
    NO_DIFFERENCE,
    TOO_FEW,
    UNDECIDED,
    ComparedValues,
    sure_but_within,
)
from artist.results.terms.chief_metrics import HEADLINES
from artist.results.terms.glossary import unit_after
from artist.results.terms.number_text import counted, percent, short

_PHRASES = {
    "makespan_s": ("finishes all jobs {by} sooner than {baseline}", "later"),
    "jct_mean_s": ("finishes jobs {by} sooner than {baseline} on average", "later"),
    "queue_delay_mean_s": ("keeps jobs waiting {by} shorter than {baseline} on average", "longer"),
    "comm_time_mean_s": ("spends {by} less time on communication than {baseline}", "more"),
}
"""Metric -> what less of it means, and the word that takes the place of the comparative."""
_COMPARATIVE = {"makespan_s": "sooner", "jct_mean_s": "sooner", "queue_delay_mean_s": "shorter",
                "comm_time_mean_s": "less"}  # fmt: skip

_MORE_IS_BETTER = frozenset({"gpu_computing_share", "jain_index"})
_NEITHER = ("placements_", "gpu_allocated_share", "gpu_communicating_share", "latency_")
"""Metrics of which neither less nor more is good for its own sake."""

_WORDS = {"jct": "JCT", "gpu ": "GPU ", "comm ": "communication ", " p9": " P9", " p5": " P5"}
"""Parts of a metric's name, and what they are in a sentence."""

_COUNTED = ("preemptions", "migrations", "placements_")
"""Metrics of which there are fewer, not less."""

_LEAST_TOLD = 0.0005
"""A share that is smaller is no number of percent that anybody reads."""

_NAMES = {
    "makespan_s": "makespan",
    "jct_mean_s": "JCT mean",
    "jct_p50_s": "JCT median",
    "queue_delay_mean_s": "queueing delay",
    "queue_delay_p95_s": "queueing delay P95",
    "queue_delay_p99_s": "queueing delay P99",
    "comm_time_mean_s": "communication",
}


class Side(StrEnum):
    """What a sentence says of its policy."""

    BETTER = "better"
    WORSE = "worse"
    LESS = "less"
    MORE = "more"
    EQUAL = "equal"
    EXACT = "exact"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence about one metric of one or several policies, without a full stop."""

    side: Side
    text: str


def metric_name(metric: str) -> str:
    """A metric in words: `jct_p95_s` is the JCT P95."""
    if metric in _NAMES:
        return _NAMES[metric]
    words = metric.removesuffix("_s").replace("_", " ")
    for part, word in _WORDS.items():
        words = words.replace(part, word)
    return words


def sentences(
    metric: str,
    baseline: str,
    compared: Mapping[str, ComparedValues],
    equivalence: float = EQUIVALENCE,
    exact: Collection[str] = (),
) -> list[Sentence]:
    """What the comparisons of some policies with the baseline say of a metric.

    Policies with less of the metric come first, then those with more, each with its own sentence.
    Then come those of which no permutation changes the difference, `exact`. Those of any other
    verdict share a sentence.
    """
    sure = [policy for policy in compared if compared[policy].verdict in (LESS, MORE)]
    sure.sort(key=lambda policy: _size(compared[policy]))
    told = [_sure(metric, policy, baseline, compared[policy], equivalence) for policy in sure]
    told += [_exact(metric, policy, baseline, compared[policy]) for policy in exact]
    others: dict[str, list[str]] = {}
    for policy, one in compared.items():
        if policy not in sure and policy not in exact:
            others.setdefault(one.verdict, []).append(policy)
    for verdict, policies in others.items():
        count = min(compared[policy].replicates for policy in policies)
        told.append(_unsure(metric, verdict, policies, baseline, count, equivalence))
    return told


def side(metric: str, verdict: str) -> Side:
    """Whether a verdict of `less` or `more` is good or bad; for some metrics it is neither."""
    if metric.startswith(_NEITHER):
        return Side(verdict)
    return Side.BETTER if (verdict == LESS) != (metric in _MORE_IS_BETTER) else Side.WORSE


def _size(compared: ComparedValues) -> float:
    return compared.difference if math.isnan(compared.ratio) else compared.ratio - 1


def _sure(
    metric: str, policy: str, baseline: str, compared: ComparedValues, equivalence: float
) -> Sentence:
    by, interval = _amounts(metric, compared)
    said = _said(metric, by, baseline, more=compared.verdict == MORE)
    if sure_but_within(compared, equivalence):
        said += f", but by less than {100 * equivalence:g} %"
    note = f"{metric_name(metric)}; {interval}, {counted(compared.replicates, 'replicate')}"
    return Sentence(side(metric, compared.verdict), f"{policy} {said} ({note})")


def _said(metric: str, by: str, baseline: str, *, more: bool) -> str:
    form, opposite = _PHRASES.get(metric, ("has {by} less {name} than {baseline}", "more"))
    if more:
        form = form.replace(_COMPARATIVE.get(metric, "less"), opposite)
    elif metric.startswith(_COUNTED):
        form = form.replace("less", "fewer")
    return form.format(by=by, baseline=baseline, name=metric_name(metric))


def _exact(metric: str, policy: str, baseline: str, compared: ComparedValues) -> Sentence:
    """A difference of which is known that it is none of the order, on one trace only."""
    note = f"({metric_name(metric)}; the same under all permutations)"
    if abs(_size(compared)) < _LEAST_TOLD and not math.isnan(compared.ratio):
        text = f"on this trace {policy} is within {percent(_LEAST_TOLD)} % of {baseline}"
        return Sentence(Side.EXACT, f"{text} {note}")
    by, _ = _amounts(metric, compared)
    said = _said(metric, by, baseline, more=_size(compared) > 0)
    return Sentence(Side.EXACT, f"on this trace {policy} {said} {note}")


def _amounts(metric: str, compared: ComparedValues) -> tuple[str, str]:
    """The difference and its interval without signs: the smaller end first."""
    if math.isnan(compared.ratio):
        unit = unit_after(metric)
        middle, *ends = (abs(x) for x in (compared.difference, compared.low, compared.high))
        low, high = (short(end) for end in sorted(ends))
        return f"{short(middle)}{unit}", f"{low} to {high}{unit}"
    middle, *ends = (abs(x - 1) for x in (compared.ratio, compared.low, compared.high))
    low, high = (percent(end) for end in sorted(ends))
    return f"{percent(middle)} %", f"{low} to {high} %"


def _unsure(
    metric: str,
    verdict: str,
    policies: Sequence[str],
    baseline: str,
    count: int,
    equivalence: float,
) -> Sentence:
    named = listed(policies)
    note = f"({metric_name(metric)}; {counted(count, 'replicate')})"
    several = len(policies) > 1
    if verdict == IDENTICAL:
        be = "are" if several else "is"
        return Sentence(Side.EQUAL, f"{named} {be} identical to {baseline} {note}")
    if verdict == NO_DIFFERENCE:
        differ = "differ" if several else "differs"
        less = f"by less than {100 * equivalence:g} %"
        return Sentence(Side.EQUAL, f"{named} {differ} from {baseline} {less} {note}")
    if verdict == TOO_FEW:
        why = f"a verdict needs {LEAST_REPLICATES} independent replicates"
        return Sentence(Side.OPEN, f"nothing is said of {named} against {baseline}: {why} {note}")
    return Sentence(Side.OPEN, f"{named} cannot be told apart from {baseline} {note}")


def listed(names: Sequence[str]) -> str:
    """The names as a part of a sentence: `a, b and c`."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


# -- the best policy -----------------------------------------------------------------


def best_sentence(best: Best, value: str, equivalence: float = EQUIVALENCE) -> str:
    """Which policy is best, by how much, and how sure that is. `value`: the best one's, in words.

    Average JCT: sjf has the lowest, 4,321 s, 12 % below the next, las; surely lower than fifo.
    """
    name, who = HEADLINES[best.metric], listed(best.policies)
    if not best.others:
        return f"{name}: equal under all, {value}."
    share = 1 - best.value / best.next_value if best.next_value > 0 else 0.0
    verb = "has the lowest" if len(best.policies) == 1 else "have the lowest"
    following = ", ".join(("the next", *best.next_policies))
    gap = f", {percent(share)} % below {following}" if share > _LEAST_TOLD else ""
    if 0 < share <= _LEAST_TOLD:
        gap = f", next to nothing below {following}"
    return f"{name}: {who} {verb}, {value}{gap}; {'; '.join(_certainty(best, equivalence))}."


def _certainty(best: Best, equivalence: float) -> Iterator[str]:
    """What the verdicts of the pairs say, as parts of a sentence."""
    if surely := best.with_verdict(MORE):
        near = [policy for policy in surely if sure_but_within(best.others[policy], equivalence)]
        by = f", but by less than {100 * equivalence:g} %" if near else ""
        than = f" than {listed(near)}" if near and len(near) < len(surely) else ""
        yield f"surely lower than {'all others' if best.surely else listed(surely)}{by}{than}"
    if equal := best.with_verdict(NO_DIFFERENCE):
        yield f"no difference beyond {100 * equivalence:g} % from {listed(equal)}"
    # `less` beside a lower mean: geometric and arithmetic means rank the two differently.
    if open_ := best.with_verdict(UNDECIDED, LESS):
        # Each needs a number of its own; the pair that is decided first is the one to say.
        nearest = min(open_, key=lambda policy: best.others[policy].enough or math.inf)
        more = what_would_decide(best.others[nearest], best.kind)
        where = f" against {nearest}" if len(open_) > 1 else ""
        yield f"undecided against {listed(open_)}" + (f" ({more}{where})" if more else "")
    exact = best.exactly
    few = [policy for policy in best.with_verdict(TOO_FEW) if policy not in exact]
    for policies, words in ((exact, "exact on this trace"), (few, "may be noise")):
        if policies:
            every = len(policies) == len(best.others)
            yield f"{words}{'' if every else f' against {listed(policies)}'}"


def family_words(count: int, of_what: str) -> str:
    """Which comparisons are judged together, as a sentence: `3 comparisons ... (Holm): ...`."""
    if not count:
        return f"No comparison has enough replicates to be judged: {of_what}."
    if count == 1:
        return f"1 comparison is judged: {of_what}."
    return f"{count:,} comparisons are judged together (Holm): {of_what}."


def what_would_decide(compared: ComparedValues, kind: str = "replicates") -> str:
    """How many more would decide, in words; empty unless undecided. `kind`: more of what."""
    if compared.verdict != UNDECIDED:
        return ""
    if compared.enough is None:
        return f"more than {MOST_REPLICATES:,} {kind} would be needed"
    more = compared.enough - compared.replicates
    if more == 1:
        return f"1 more {kind.removesuffix('s')} would decide"
    return f"about {more:,} more {kind} would decide"
