"""Prints a comparison in several worlds: where each verdict holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isnan
from typing import Any

from artist.cli.comparison_text import as_json
from artist.cli.output import print_table, print_text
from artist.experiments.comparison.across import Domain, domains
from artist.experiments.comparison.assumptions import AS_GIVEN, Effect, effects
from artist.experiments.comparison.comparison_result import Comparison
from artist.results.statistics.compare_values import Verdict
from artist.results.terms.number_text import counted

_WORDS = {Verdict.LESS: "lower", Verdict.MORE: "higher"}


def print_across(comparisons: Mapping[str, Comparison]) -> None:
    """Print a row per metric and variant: the difference in each world, and where it holds."""
    first = next(iter(comparisons.values()))
    found = domains(comparisons)
    rows = [
        (
            one.metric,
            one.variant,
            *(
                _cell(each.differences[one.variant][one.metric].ratio, one.verdicts[world])
                for world, each in comparisons.items()
            ),
            domain_words(one),
        )
        for one in found
    ]
    baseline = first.variants[0]
    print_table(
        f"against {baseline} in {counted(len(comparisons), 'world')}: {first.design}, paired",
        ("metric", first.setting, *comparisons, "where"),
        rows,
    )
    for sentence in _sentences(found, baseline):
        print_text(sentence)
    print_text(
        "Sure means: over orders of machines"
        + ("" if first.kind == "permutations" else " and draws of the trace")
        + ", in that world. A verdict that holds in all of them is wrong in at most 5 % of cases."
    )


def across_json(comparisons: Mapping[str, Comparison]) -> dict[str, Any]:
    """All comparisons, and for each metric and variant the worlds by verdict."""
    return {
        "worlds": {world: as_json(each) for world, each in comparisons.items()},
        "domains": [
            {
                "metric": one.metric,
                "variant": one.variant,
                "holds_everywhere": one.holds_everywhere,
                "flips": one.flips,
                "worlds": {str(verdict): one.worlds(verdict) for verdict in Verdict},
            }
            for one in domains(comparisons)
        ],
    }


def print_assumptions(comparisons: Mapping[str, Comparison]) -> None:
    """Print how far each assumption moves each difference, the largest first, and what flips."""
    first = comparisons[AS_GIVEN]
    found = effects(comparisons)
    rows = [
        (
            one.domain.metric,
            one.domain.variant,
            one.assumption,
            _cell(_ratio(first, one.domain), one.given),
            _cell(_ratio(comparisons[one.assumption], one.domain), one.there),
            _effect_words(one),
        )
        for one in found
    ]
    print_table(
        f"one assumption changed at a time: {first.design}, paired",
        ("metric", first.setting, "assumption", AS_GIVEN, "changed", "verdict"),
        rows,
    )
    for domain in domains(comparisons):
        print_text(_what_decides(domain, [one for one in found if one.domain == domain]))


def assumptions_json(comparisons: Mapping[str, Comparison]) -> dict[str, Any]:
    """All comparisons, and the effects in the order of the table."""
    return {
        "worlds": {world: as_json(each) for world, each in comparisons.items()},
        "effects": [
            {
                "metric": one.domain.metric,
                "variant": one.domain.variant,
                "assumption": one.assumption,
                "given": str(one.given),
                "there": str(one.there),
                "shift": None if isnan(one.shift) else one.shift,
                "flips": one.flips,
            }
            for one in effects(comparisons)
        ],
    }


def _what_decides(domain: Domain, found: list[Effect]) -> str:
    """What decides a difference, as a sentence."""
    deciding = [
        f"{one.assumption} ({_effect_words(one)})" for one in found if one.given != one.there
    ]
    what = f"{domain.metric} of {domain.variant}"
    if not deciding:
        return f"No assumption changes the verdict on {what}."
    return f"What decides {what}: {', '.join(deciding)}."


def _effect_words(effect: Effect) -> str:
    if effect.given == effect.there:
        return "stays"
    there = _WORDS.get(effect.there, str(effect.there))
    return f"flips: {there}" if effect.flips else f"becomes {there}"


def _ratio(comparison: Comparison, domain: Domain) -> float:
    return comparison.differences[domain.variant][domain.metric].ratio


def domain_words(domain: Domain) -> str:
    """`lower in all 5`, or `lower in 4 of 5; undecided in t4`."""
    by_count = sorted(
        ((domain.worlds(verdict), _WORDS.get(verdict, str(verdict))) for verdict in Verdict),
        key=lambda pair: -len(pair[0]),
    )
    (most, word), *others = [pair for pair in by_count if pair[0]]
    total = len(domain.verdicts)
    if not others:
        return f"{word} in all {total}"
    rest = "; ".join(f"{other} in {', '.join(worlds)}" for worlds, other in others)
    return f"{word} in {len(most)} of {total}; {rest}"


def _sentences(found: list[Domain], baseline: str) -> Iterator[str]:
    """What holds everywhere, and what depends on the world."""
    everywhere = [one for one in found if one.holds_everywhere]
    flipping = [one for one in found if one.flips]
    if everywhere:
        told = ", ".join(
            f"{one.variant} has {_WORDS[next(iter(one.verdicts.values()))]} {one.metric}"
            for one in everywhere
        )
        yield f"Holds in every world, against {baseline}: {told}."
    if flipping:
        told = ", ".join(f"{one.metric} of {one.variant}" for one in flipping)
        yield f"Depends on the world, even its sign: {told}."
    if not everywhere and not flipping:
        yield f"No difference to {baseline} is sure in every world, and none changes its sign."


def _cell(ratio: float, verdict: Verdict) -> str:
    """The difference and the verdict in one world."""
    size = "" if isnan(ratio) or verdict is Verdict.IDENTICAL else f"{ratio - 1:+.1%} "
    return f"{size}{_WORDS.get(verdict, verdict)}"
