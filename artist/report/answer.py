"""The answer of a comparison in two sentences: what is best and by how much, and how sure that is.

    las has the lowest average JCT, 26.9 h, 12 % below the next, tiresias [8 .. 16 %].
    Surely lower than fifo, srtf and 3 more; no difference beyond 2 % from dally; undecided
    against tiresias (about 5 more permutations would probably settle it).

The sentences are about the first of the headline metrics that was compared. If nothing is sure
about it, the first sentence begins with that, and the second names a metric that is sure:

    No policy is surely best: las has the lowest average JCT, 26.9 h, 2 % below the next, dally.
    Undecided against dally; but las has the lowest makespan, 11 d, 19 % below the next, dally.

A third names the options that some of the policies lack.

If failures vary, their costs come first; if other settings vary, too, each value of failures has an
answer of its own (`failure_costs.py`).

All pairs of variants are judged together, because the best one is picked from the data.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from artist.experiments.comparison.comparison_result import Comparison
from artist.report.failure_costs import failure_costs, tells_costs, within_failures
from artist.report.metric_text import JOINTLY, value_text
from artist.report.verdict_sentences import metric_name, share_text, surely_lower, undecided
from artist.results.caveats import no_verdict
from artist.results.statistics.best_policy import Best
from artist.results.statistics.compare_values import (
    IDENTICAL,
    LEAST_REPLICATES,
    LESS,
    MORE,
    NO_DIFFERENCE,
    TOO_FEW,
    UNDECIDED,
    ComparedValues,
    sure_but_within,
)
from artist.results.statistics.holm import undecided_together
from artist.results.terms.number_text import DisplayUnit, listed, percent, time_unit
from artist.units import counted

_MOST_NAMES = 5
"""If there are more variants, the rest is counted, not named."""

_LEAST_TOLD = 0.0005
"""A smaller share would round to a percentage that says nothing."""


def answer(comparison: Comparison) -> list[str]:
    """The two sentences, then those about options that not all policies have.

    There may be only one sentence, or none if no headline metric was compared. If runs cancelled
    jobs, the only sentence says so, since there are no verdicts.
    """
    if comparison.cancelled:
        return [no_verdict(comparison.cancelled)]
    bests = comparison.best_variants()
    partly = [f"Not all else is equal: {one}." for one in comparison.partly_taken]
    if tells_costs(comparison):
        return [*failure_costs(comparison, bests[0].metric if bests else None), *partly]
    if within := within_failures(comparison):
        told = [f"With {value}: {' '.join(answer(one))}" for value, one in within.items()]
        return [*told, *partly]
    if not bests:
        return []
    best, *others = bests
    what, parts = _what(best, comparison), [*_certainty(best, comparison)]
    alike = _all_alike(best, comparison) if best.passed_over else _all_equal(best, comparison)
    if alike and (best.passed_over or not _sure(best)):
        what = _alike(best, comparison)
    elif not _sure(best):
        what = _not_sure(best, others, comparison) + what
    if not _sure(best):
        parts += [f"but {_what(one, comparison)}" for one in others if _all_sure(one)][:1]
    return [f"{what}.", *_sentences(parts), *partly]


def _sentences(parts: Sequence[str]) -> list[str]:
    """The parts as one sentence, or each as its own sentence if any has semicolons."""
    whole = parts if any(";" in one for one in parts) else filter(None, ["; ".join(parts)])
    return [f"{one[0].upper()}{one[1:]}." for one in whole]


def unit_of(comparison: Comparison, metric: str) -> DisplayUnit:
    """The unit of a metric's means in table and sentences: suits the least that is not 0."""
    return time_unit(min(filter(None, comparison.means(metric).values()), default=0.0))


def _what(best: Best, comparison: Comparison) -> str:
    """Which variant is best, and how far below the next policy or the baseline setting."""
    unit = unit_of(comparison, best.metric)
    name, value = metric_name(best.metric), value_text(best.metric, best.value, unit)
    if not best.others:
        count = len(best.policies)
        return f"the {name} is {value} under {'both' if count == 2 else f'all {count}'}"
    have = "has" if len(best.policies) == 1 else "have"
    within = f" within {share_text(comparison.equivalence)}" if best.passed_over else ""
    lowest = f"{listed(best.policies)} {have} the lowest {name}{within}, {value}"
    baseline = comparison.variants[0]
    if comparison.setting != "policy" and baseline not in best.policies:
        other = words = baseline
    elif best.next_policies:
        other, words = best.next_policies[0], f"the next, {listed(best.next_policies)}"
    else:
        return f"{lowest}{_passed_over(best, comparison)}"
    below = best.below(other)
    if below <= _LEAST_TOLD:
        return f"{lowest}, next to nothing below {words}{_passed_over(best, comparison)}"
    gap, interval = f"{percent(below)} %", _below(best.others[other])
    return f"{lowest}, {gap} below {words}{interval}{_passed_over(best, comparison)}"


def _alike(best: Best, comparison: Comparison) -> str:
    """Say that no variant differs beyond the equivalence, with their values and efforts."""
    names, means = [*best.policies, *best.others], comparison.means(best.metric)
    unit = unit_of(comparison, best.metric)
    values = listed([value_text(best.metric, means[one], unit) for one in names[:_MOST_NAMES]])
    if len(names) > _MOST_NAMES:
        ends = (choose(means[one] for one in names) for choose in (min, max))
        values = " to ".join(value_text(best.metric, end, unit) for end in ends)
    within = share_text(comparison.equivalence)
    told = f"{_named(names)} are alike within {within}: {metric_name(best.metric)} {values}"
    if best.passed_over:
        others = " and ".join(best.passed_over)
        told += f"; prefer {best.policies[0]}, since {others} {_takes_more(best, comparison)}"
    return told


def _passed_over(best: Best, comparison: Comparison) -> str:
    """Say that other variants are hardly better, with their mean, and what more they take."""
    if not best.passed_over:
        return ""
    are = "are" if len(best.passed_over) > 1 else "is"
    beyond = share_text(comparison.equivalence)
    # They have the same mean, the least.
    mean = comparison.means(best.metric)[best.passed_over[0]]
    told = value_text(best.metric, mean, unit_of(comparison, best.metric))
    names, more = " and ".join(best.passed_over), _takes_more(best, comparison)
    return f"; {names} ({told}) {are} no better beyond {beyond}, and {more}"


def _takes_more(best: Best, comparison: Comparison) -> str:
    """The efforts of which variants that were passed over take more than the best one."""
    first, *_ = best.policies
    mine, theirs = (comparison.effort(one) for one in (first, best.passed_over[0]))
    several = len(best.passed_over) > 1
    price, gpus, _ = (more > less for more, less in zip(theirs, mine, strict=True))
    takes = ("cost", "need") if several else ("costs", "needs")
    more = f"{takes[0]} more" if price else f"{takes[1]} more GPUs"
    if not price and not gpus:
        more = "change more settings" if several else "changes more settings"
    return more


def _below(compared: ComparedValues) -> str:
    """How far the best one is below another, as an interval; empty if there is none.

    As in the table, it is the joint interval if the verdict is undecided only because pairs are
    judged together.
    """
    if compared.verdict == TOO_FEW or math.isnan(compared.ratio) or not compared.low > 0:
        return ""
    jointly = undecided_together(compared) and compared.joint_low > 0
    ends = (compared.low, compared.high)
    if jointly:
        ends = (compared.joint_low, compared.joint_high)
    low, high = (100 * (1 - 1 / ratio) for ratio in ends)
    return f" [{_digits(low)} .. {_digits(high)} %{JOINTLY if jointly else ''}]"


def _digits(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 10 else f"{value:.2g}"


def _sure(best: Best) -> bool:
    """Whether any variant surely has more of the metric than the best one."""
    return bool(best.with_verdict(MORE) or best.exactly)


def _all_sure(best: Best) -> bool:
    """Whether every other variant surely has more."""
    return bool(best.others) and {*best.with_verdict(MORE), *best.exactly} == {*best.others}


def _not_sure(best: Best, others: Sequence[Best], comparison: Comparison) -> str:
    """The start of a sentence that would otherwise read like a sure result."""
    if not best.others:
        return (
            f"{'Only another metric' if any(one.others for one in others) else 'Nothing'} differs: "
        )
    return f"No {'policy' if comparison.setting == 'policy' else 'setting'} is surely best: "


def _all_alike(best: Best, comparison: Comparison) -> bool:
    """Whether no other variant differs by more than the equivalence."""
    near = [one for one in best.others.values() if sure_but_within(one, comparison.equivalence)]
    return len(best.with_verdict(NO_DIFFERENCE, IDENTICAL)) + len(near) == len(best.others)


def _all_equal(best: Best, comparison: Comparison) -> bool:
    """Whether all are alike, and at least one surely is (not only by `sure_but_within`)."""
    return bool(best.with_verdict(NO_DIFFERENCE, IDENTICAL)) and _all_alike(best, comparison)


def _certainty(best: Best, comparison: Comparison) -> Iterator[str]:
    """What the verdicts of the pairs say, as parts of a sentence."""
    if not best.others:
        yield f"equal on {counted(best.replicates, 'replicate')}"
        waits = [parts["waiting"] for parts in comparison.parts.values()]
        if waits and not any(map(any, waits)):
            yield "no job waited for GPUs, so fewer GPUs or more jobs would tell more"
    yield from surely_lower(best, comparison.equivalence, _named)
    equal = best.with_verdict(NO_DIFFERENCE, IDENTICAL)
    if equal and (_sure(best) or not _all_equal(best, comparison)):
        yield f"no difference beyond {share_text(comparison.equivalence)} from {_named(equal)}"
    # `less` beside a lower mean: geometric and arithmetic means rank the two differently.
    slightly = [one for one in best.passed_over if best.others[one].verdict == LESS]
    if slightly:
        within = share_text(comparison.equivalence)
        are = "is" if len(slightly) == 1 else "are"
        yield f"only {_named(slightly)} {are} surely lower, by less than {within}"
    open_ = [one for one in best.with_verdict(UNDECIDED, LESS) if one not in slightly]
    if open_:
        yield undecided(best, open_, _named)
        if sure := [one for one in open_ if _table_is_sure(best, one, comparison)]:
            judged = f"{counted(comparison.family, 'difference')} and not {best.family} pairs"
            yield f"the table, which judges {judged}, is sure of {_named(sure)}"
    exact = best.exactly
    if exact:
        every = "" if len(exact) == len(best.others) else f" against {_named(exact)}"
        yield f"exact on this trace{every}: no order of machines changes it"
    few = [one for one in best.with_verdict(TOO_FEW) if one not in exact]
    if few:
        every = "" if len(few) == len(best.others) else f" against {_named(few)}"
        there = f"there {'is' if comparison.independent == 1 else 'are'} {comparison.independent}"
        if comparison.independent >= LEAST_REPLICATES:
            there = "all replicates here are copies of one run"
        needed = f"a verdict needs {LEAST_REPLICATES} independent replicates"
        yield f"untested{every}: {needed}, {there}"


def _table_is_sure(best: Best, other: str, comparison: Comparison) -> bool:
    """Whether the table compares the same two, and says `less` or `more`."""
    baseline, *variants = comparison.variants
    pair = {best.policies[0], other}
    return any(
        pair == {baseline, one} and comparison.differences[one][best.metric].verdict in (LESS, MORE)
        for one in variants
    )


def _named(names: Sequence[str]) -> str:
    """The names, or the first of them and how many more there are."""
    if len(names) <= _MOST_NAMES:
        return listed(names)
    return listed([*names[: _MOST_NAMES - 1], f"{len(names) - _MOST_NAMES + 1} more"])
