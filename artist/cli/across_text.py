"""Prints a comparison in several worlds: where each verdict holds."""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan
from typing import Any

from artist.cli.comparison_json import as_json
from artist.cli.comparison_text import MOST_ROWS
from artist.cli.output import or_null, print_table, print_text
from artist.experiments.comparison.across import Across, Domain, domains
from artist.experiments.comparison.assumptions import AS_GIVEN, Effect, effects
from artist.experiments.comparison.comparison_result import Comparison
from artist.report.metric_text import interval_text
from artist.results.statistics.compare_values import Verdict
from artist.results.terms.number_text import listed
from artist.units import counted

_WORDS = {Verdict.LESS: "lower", Verdict.MORE: "higher"}


def print_across(made: Across) -> None:
    """Print where verdicts hold, then a row per metric and variant with each world's difference."""
    comparisons = made.comparisons
    first = next(iter(comparisons.values()))
    found = domains(comparisons)
    baseline = first.variants[0]
    for sentence in _sentences(found, baseline):
        print_text(sentence)
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
    print_table(
        f"against {baseline} in {counted(len(comparisons), 'world')}: {first.design}, paired",
        ("metric", first.setting, *comparisons, "where"),
        rows,
    )
    over = "orders of machines"
    if first.kind != "permutations":
        over += " and draws of the trace"
    print_text(
        f"Each world is judged on its own, over {over}: in 95 % of cases none of its verdicts "
        "lower and higher is wrong. The same holds for the verdicts that all worlds give."
    )
    _print_not_tried(made)


def _print_not_tried(made: Across) -> None:
    """Print what a time budget or an interruption left out."""
    for world, one in made.comparisons.items():
        if len(one.replicates) < one.replicates_asked:
            print_text(
                f"{world}: {len(one.replicates)} of {one.replicates_asked} replicates; time ran "
                "out."
            )
    if made.not_tried:
        print_text(
            f"Not tried because time ran out: {'; '.join(made.not_tried)}. Keep runs with "
            "--out DIR, and continue with --resume."
        )


def across_json(made: Across) -> dict[str, Any]:
    """All comparisons, and for each metric and variant the worlds by verdict."""
    return {
        "worlds": {world: as_json(each) for world, each in made.comparisons.items()},
        "not_tried": list(made.not_tried),
        "domains": [
            {
                "metric": one.metric,
                "variant": one.variant,
                "holds_everywhere": one.holds_everywhere,
                "flips": one.flips,
                "worlds": {str(verdict): one.worlds(verdict) for verdict in Verdict},
            }
            for one in domains(made.comparisons)
        ],
    }


def print_assumptions(made: Across, *, all_: bool) -> None:
    """Print what decides, then how far each assumption moves each difference."""
    comparisons = made.comparisons
    first = comparisons[AS_GIVEN]
    found = effects(comparisons)
    for sentence in _what_decides(first, found):
        print_text(sentence)
    ranked = sorted(found, key=_by_weight)
    shown = ranked if all_ else ranked[:MOST_ROWS]
    rows = [
        (
            one.domain.metric,
            one.domain.variant,
            one.assumption,
            _cell(_ratio(first, one.domain), one.given),
            _cell(_ratio(comparisons[one.assumption], one.domain), one.there),
            "" if one.moved is None else interval_text(one.domain.metric, one.moved),
            _effect_words(one),
        )
        for one in shown
    ]
    left = f"; the first {len(shown)} of {len(found)} rows; --all prints all" if (
        len(shown) < len(found)
    ) else ""  # fmt: skip
    print_table(
        f"one assumption changed at a time: {first.design}, paired{left}",
        ("metric", first.setting, "assumption", AS_GIVEN, "changed", "moved by", "verdict"),
        rows,
    )
    print_text(
        "Moved by: the change of the ratio to "
        f"{first.variants[0]}, replicate by replicate; sure where all {len(found)} together say so "
        "(Holm). Each world is judged on its own: in 95 % of cases none of its verdicts lower and "
        "higher is wrong."
    )
    _print_not_tried(made)


def _by_weight(effect: Effect) -> tuple[bool, bool, bool, float]:
    """Sorting key: effects that decide first, then significant ones, each by descending size."""
    return not effect.decides, not effect.surely_moves, isnan(effect.shift), -effect.shift


def assumptions_json(made: Across) -> dict[str, Any]:
    """All comparisons, and the effects: of each metric and variant the largest first."""
    return {
        "worlds": {world: as_json(each) for world, each in made.comparisons.items()},
        "not_tried": list(made.not_tried),
        "effects": [
            {
                "metric": one.domain.metric,
                "variant": one.domain.variant,
                "assumption": one.assumption,
                "given": str(one.given),
                "there": str(one.there),
                "shift": or_null(one.shift),
                "surely_moves": one.surely_moves,
                "decides": one.decides,
                "flips": one.flips,
            }
            for one in effects(made.comparisons)
        ],
    }


def _what_decides(first: Comparison, found: list[Effect]) -> Iterator[str]:
    """A sentence per metric: which assumptions decide a difference, or that none does."""
    for metric in first.metrics:
        of_metric = [one for one in found if one.domain.metric == metric]
        variants = list(dict.fromkeys(one.domain.variant for one in of_metric))
        steady, untested = [], []
        for variant in variants:
            of_variant = [one for one in of_metric if one.domain.variant == variant]
            deciding = [
                f"{one.assumption} ({_effect_words(one)})" for one in of_variant if one.decides
            ]
            if all(_lacks_verdict(one) for one in of_variant):
                untested.append(variant)
            elif deciding:
                yield f"What decides {metric} of {variant}: {'; '.join(deciding)}."
            else:
                steady.append(variant)
        if steady:
            yield f"No assumption surely changes the verdict on {metric} of {listed(steady)}."
        if untested:
            yield f"Too few replicates for a verdict on {metric} of {listed(untested)}."


def _lacks_verdict(effect: Effect) -> bool:
    return Verdict.TOO_FEW in (effect.given, effect.there)


def _effect_words(effect: Effect) -> str:
    if _lacks_verdict(effect):
        return "no verdict"
    if effect.given == effect.there:
        return "stays"
    there = _WORDS.get(effect.there, str(effect.there))
    words = f"flips: {there}" if effect.flips else f"becomes {there}"
    return words if effect.decides else f"{words}, may be noise"


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
        return f"{word} in {'both' if total == 2 else f'all {total}'}"
    rest = "; ".join(f"{other} in {', '.join(worlds)}" for worlds, other in others)
    return f"{word} in {len(most)} of {total}; {rest}"


def _sentences(found: list[Domain], baseline: str) -> Iterator[str]:
    """Which verdicts hold in all worlds, and which depend on the world."""
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
        yield f"Lower than {baseline} in some worlds and higher in others: {told}."
    if not everywhere and not flipping:
        yield (
            f"No difference from {baseline} is sure in every world, and none is surely lower in "
            "one world and surely higher in another."
        )


def _cell(ratio: float, verdict: Verdict) -> str:
    """The difference and the verdict in one world: `1.8 % lower`, `-0.3 % undecided`."""
    word, change = _WORDS.get(verdict, str(verdict)), 100 * (ratio - 1)
    if isnan(ratio) or verdict is Verdict.IDENTICAL:
        return word
    return f"{abs(change):,.1f} % {word}" if verdict in _WORDS else f"{change:+,.1f} % {word}"
