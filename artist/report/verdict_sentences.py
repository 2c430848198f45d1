"""Verdicts of comparisons as sentences. A sentence claims what its verdict claims, and no more.

    tiresias finishes jobs 12 % sooner than dally on average (JCT mean; 8 to 16 %, 5 replicates)
    las and srtf cannot be told apart from dally (JCT mean; 5 replicates)

Only `less` and `more` give a sentence about better or worse. If a difference is sure but within
the equivalence, the sentence says both: `sooner, but by less than 2 %`. Percentages and intervals
are derived from the ratio, so they agree with the table of a comparison.

`best_sentence` names the best policy of a metric and what the verdicts of all pairs say about it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
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
    OTHER_JOBS,
    TOO_FEW,
    UNDECIDED,
    ComparedValues,
    Verdict,
    sure_but_within,
)
from artist.results.terms.chief_metrics import HEADLINES
from artist.results.terms.glossary import find, unit_after
from artist.results.terms.number_text import listed, percent, short
from artist.units import counted


class Side(StrEnum):
    """What a sentence claims about its policy."""

    BETTER = "better"
    WORSE = "worse"
    LESS = "less"
    MORE = "more"
    EQUAL = "equal"
    EXACT = "exact"
    OPEN = "open"


# -- templates -----------------------------------------------------------------------

_SURE = "{policy} {difference} ({metric}; {low} to {high}, {replicates})"
_SURE_BUT_WITHIN = (
    "{policy} {difference}, but by less than {within} ({metric}; {low} to {high}, {replicates})"
)
_EXACT = "on this trace {policy} {difference} ({metric}; the same under all permutations)"
_NOT_SURE = {
    IDENTICAL: (Side.EQUAL, "{policies} {are} identical to {baseline} ({metric}; {replicates})"),
    NO_DIFFERENCE: (
        Side.EQUAL,
        "{policies} {differ} from {baseline} by less than {within} ({metric}; {replicates})",
    ),
    TOO_FEW: (
        Side.OPEN,
        "there is no verdict on {policies} against {baseline}: it needs {least} independent "
        "replicates ({metric}; {replicates})",
    ),
    UNDECIDED: (
        Side.OPEN, "{policies} cannot be told apart from {baseline} ({metric}; {replicates})"
    ),
    OTHER_JOBS: (
        Side.OPEN,
        "there is no verdict on {policies} against {baseline}, which finished other jobs "
        "({metric}; {replicates})",
    ),
}  # fmt: skip
"""Verdict -> what its sentence claims about the policies, and the sentence."""

_DIFFERENCES = {
    "makespan_s": (
        "finishes all jobs {by} sooner than {baseline}",
        "finishes all jobs {by} later than {baseline}",
    ),
    "jct_mean_s": (
        "finishes jobs {by} sooner than {baseline} on average",
        "finishes jobs {by} later than {baseline} on average",
    ),
    "queue_delay_mean_s": (
        "keeps jobs waiting {by} shorter than {baseline} on average",
        "keeps jobs waiting {by} longer than {baseline} on average",
    ),
    "comm_time_mean_s": (
        "spends {by} less time on communication than {baseline}",
        "spends {by} more time on communication than {baseline}",
    ),
}
"""Metric -> what less of it means, and what more of it means."""
_OF_AMOUNTS = ("has {by} less {metric} than {baseline}", "has {by} more {metric} than {baseline}")
_OF_COUNTS = ("has {by} fewer {metric} than {baseline}", "has {by} more {metric} than {baseline}")
_COUNTED = ("preemptions", "migrations", "placements_")
"""Metrics that count something, so that sentences say "fewer", not "less"."""
_NEXT_TO_NONE = "is within {by} of {baseline}"

_LEAST_TOLD = 0.0005
"""A smaller share would round to a percentage that says nothing."""

_NAMES = {
    "makespan_s": "makespan",
    "jct_mean_s": "JCT mean",
    "jct_p50_s": "JCT median",
    "queue_delay_mean_s": "queueing delay",
    "queue_delay_p95_s": "queueing delay P95",
    "queue_delay_p99_s": "queueing delay P99",
    "comm_time_mean_s": "communication",
}
_WORDS = {"jct": "JCT", "gpu ": "GPU ", "comm ": "communication ", " p9": " P9", " p5": " P5"}
"""Parts of a metric's name -> their form in a sentence."""


def metric_name(metric: str) -> str:
    """A metric in words: `jct_p95_s` is the JCT P95."""
    if metric in _NAMES:
        return _NAMES[metric]
    words = metric.replace("_gpu_s", " GPU time").removesuffix("_s").replace("_", " ")
    for part, word in _WORDS.items():
        words = words.replace(part, word)
    return words


# -- against a baseline --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence about one metric of one or several policies, without a full stop."""

    side: Side
    text: str


def sentences(
    metric: str,
    baseline: str,
    compared: Mapping[str, ComparedValues],
    equivalence: float = EQUIVALENCE,
    exact: Collection[str] = (),
) -> Iterator[Sentence]:
    """Sentences on a metric from the comparisons of some policies with the baseline.

    Policies with less of the metric come first, then those with more, each with its own sentence.
    Then come the `exact` ones, whose difference no permutation changes. Policies with the same
    other verdict share a sentence.
    """
    common = {
        "metric": metric_name(metric),
        "baseline": baseline,
        "within": share_text(equivalence),
    }
    sure = [policy for policy, one in compared.items() if one.verdict in (LESS, MORE)]
    for policy in sorted(sure, key=lambda policy: _size(compared[policy])):
        one = compared[policy]
        by, *ends = _amounts(metric, one)
        form = _SURE_BUT_WITHIN if sure_but_within(one, equivalence) else _SURE
        text = form.format(
            **common, policy=policy, difference=_difference(metric, by, baseline, one),
            low=ends[0], high=ends[1], replicates=counted(one.replicates, "replicate"),
        )  # fmt: skip
        yield Sentence(side(metric, one.verdict), text)
    for policy in exact:
        by, *_ = _amounts(metric, compared[policy])
        difference = _difference(metric, by, baseline, compared[policy])
        if _is_next_to_none(compared[policy]):
            difference = _NEXT_TO_NONE.format(by=share_text(_LEAST_TOLD), baseline=baseline)
        yield Sentence(Side.EXACT, _EXACT.format(**common, policy=policy, difference=difference))
    others: dict[Verdict, list[str]] = {}
    for policy, one in compared.items():
        if policy not in sure and policy not in exact:
            others.setdefault(one.verdict, []).append(policy)
    for verdict, policies in others.items():
        claim, form = _NOT_SURE[verdict]
        several = len(policies) > 1
        count = min(compared[policy].replicates for policy in policies)
        text = form.format(
            **common, policies=listed(policies), are="are" if several else "is",
            differ="differ" if several else "differs", least=LEAST_REPLICATES,
            replicates=counted(count, "replicate"),
        )  # fmt: skip
        yield Sentence(claim, text)


def side(metric: str, verdict: str) -> Side:
    """Whether a verdict of `less` or `more` is good or bad; for some metrics it is neither."""
    term = find(metric)
    if term is None or not term.better:
        return Side(verdict)
    return Side.BETTER if term.better == verdict else Side.WORSE


def _size(compared: ComparedValues) -> float:
    return compared.difference if math.isnan(compared.ratio) else compared.ratio - 1


def _is_next_to_none(compared: ComparedValues) -> bool:
    return not math.isnan(compared.ratio) and abs(compared.ratio - 1) < _LEAST_TOLD


def _difference(metric: str, by: str, baseline: str, compared: ComparedValues) -> str:
    """How a policy differs from the baseline, as the rest of a sentence."""
    usual = _OF_COUNTS if metric.startswith(_COUNTED) else _OF_AMOUNTS
    less, more = _DIFFERENCES.get(metric, usual)
    form = more if _size(compared) > 0 else less
    return form.format(by=by, baseline=baseline, metric=metric_name(metric))


def _amounts(metric: str, compared: ComparedValues) -> tuple[str, str, str]:
    """The difference and its interval without signs: the smaller end first."""
    if math.isnan(compared.ratio):
        unit = unit_after(metric)
        middle, *ends = (abs(x) for x in (compared.difference, compared.low, compared.high))
        low, high = (short(end) for end in sorted(ends))
        return f"{short(middle)}{unit}", low, f"{high}{unit}"
    middle, *ends = (abs(x - 1) for x in (compared.ratio, compared.low, compared.high))
    low, high = (percent(end) for end in sorted(ends))
    return f"{percent(middle)} %", low, f"{high} %"


def share_text(share: float) -> str:
    """A share in percent: `2 %`."""
    return f"{100 * share:g} %"


# -- the best policy -----------------------------------------------------------------


def best_sentence(best: Best, value: str, equivalence: float = EQUIVALENCE) -> str:
    """Which policy is best, by how much, and how sure that is. `value` is the best value in words.

    Average JCT: sjf has the lowest, 4,321 s, 12 % below the next, las; surely lower than fifo.
    """
    name, who = HEADLINES[best.metric], listed(best.policies)
    if not best.others:
        return f"{name}: equal under all, {value}."
    verb = "has the lowest" if len(best.policies) == 1 else "have the lowest"
    if best.passed_over:
        verb += f" within {share_text(equivalence)}, beside {' and '.join(best.passed_over)}"
    share = best.below(best.next_policies[0]) if best.next_policies else 0.0
    following = ", ".join(("the next", *best.next_policies))
    gap = f", {percent(share)} % below {following}" if share > _LEAST_TOLD else ""
    if 0 < share <= _LEAST_TOLD:
        gap = f", next to nothing below {following}"
    return f"{name}: {who} {verb}, {value}{gap}; {'; '.join(_certainty(best, equivalence))}."


def _certainty(best: Best, equivalence: float) -> Iterator[str]:
    """What the verdicts of the pairs say, as parts of a sentence."""
    yield from surely_lower(best, equivalence, listed)
    if equal := best.with_verdict(NO_DIFFERENCE):
        yield f"no difference beyond {share_text(equivalence)} from {listed(equal)}"
    # `less` beside a lower mean: geometric and arithmetic means rank the two differently.
    pairs = best.with_verdict(UNDECIDED, LESS)
    if open_ := [one for one in pairs if one not in best.passed_over]:
        yield undecided(best, open_, listed)
    exact = best.exactly
    few = [policy for policy in best.with_verdict(TOO_FEW) if policy not in exact]
    for policies, words in ((exact, "exact on this trace"), (few, "untested")):
        if policies:
            every = len(policies) == len(best.others)
            yield f"{words}{'' if every else f' against {listed(policies)}'}"


def surely_lower(
    best: Best, equivalence: float, named: Callable[[Sequence[str]], str]
) -> Iterator[str]:
    """Than which others the best one is surely lower, if any."""
    if surely := best.with_verdict(MORE):
        near = [one for one in surely if sure_but_within(best.others[one], equivalence)]
        by = f", but by less than {share_text(equivalence)}" if near else ""
        by += f" than {named(near)}" if near and near != surely else ""
        yield f"surely lower than {'all others' if best.surely else named(surely)}{by}"


def undecided(best: Best, open_: Sequence[str], named: Callable[[Sequence[str]], str]) -> str:
    """Against which others the best one is undecided, and what may decide one of these pairs."""
    # Each pair needs its own number of replicates: name the one that needs fewest.
    nearest = min(open_, key=lambda one: best.others[one].enough or math.inf)
    what = f"it against {nearest}" if len(open_) > 1 else "it"
    more = what_may_decide(best.others[nearest], best.kind, what)
    return f"undecided against {named(open_)}" + (f" ({more})" if more else "")


def catastrophe_sentence(who: str, metric: str, factor: float, more: str, run: str) -> str:
    """Say that a replicate, `who`, is far off the others (`catastrophes.far_off`).

    `more` says how to take more replicates, `run` where to look.
    """
    return (
        f"{who} has a {metric_name(metric)} {short(factor)} times the median of its replicates. "
        f"So few replicates say little about such rare runs: take more ({more}), and look at {run}."
    )


def family_words(count: int, of_what: str) -> str:
    """Which comparisons are judged together, as a sentence: `3 comparisons ... (Holm): ...`."""
    if not count:
        return f"No comparison has enough replicates to be judged: {of_what}."
    if count == 1:
        return f"1 comparison is judged: {of_what}."
    return f"{count:,} comparisons are judged together (Holm): {of_what}."


def what_may_decide(compared: ComparedValues, kind: str, what: str = "it") -> str:
    """A clause on how many more replicates decide in 80 % of cases; empty unless undecided.

    `kind` names the replicates, `what` the open question.
    """
    more = more_needed(compared)
    kind = kind.removesuffix("s") if more == "about 1 more" else kind
    probably = "" if compared.enough is None else "probably "
    return f"{more} {kind} would {probably}settle {what}" if more else ""


def more_needed(compared: ComparedValues) -> str:
    """How many more decide in 80 % of cases, `about 12 more`; empty unless undecided."""
    if compared.verdict != UNDECIDED:
        return ""
    if compared.enough is None:
        return f"not even {MOST_REPLICATES:,}"
    return f"about {compared.enough - compared.replicates:,} more"
