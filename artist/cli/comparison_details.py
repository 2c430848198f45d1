"""Prints the details of a comparison: ranges, all sentences, the parts of mean JCTs."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median

from artist.cli.comparison_notes import what_to_ask_next
from artist.cli.output import print_table, print_text
from artist.experiments.comparison.comparison_result import Comparison
from artist.report.metric_text import interval_text
from artist.report.verdict_sentences import best_sentence, family_words, sentences, what_may_decide
from artist.results.statistics.compare_values import (
    LESS,
    MORE,
    MOST_REPLICATES,
    TOO_FEW,
    ComparedValues,
    sure_but_within,
)
from artist.results.statistics.holm import undecided_together
from artist.results.terms.chief_metrics import IN_WORDS
from artist.results.terms.glossary import unit_after
from artist.results.terms.number_text import level_text, percent, short


def print_details(comparison: Comparison, in_words: Sequence[str] = IN_WORDS) -> None:
    """Print the table, the best policies, sentences about the metrics `in_words`, the parts."""
    _print_table(comparison)
    _print_family(comparison)
    if comparison.until is not None:
        print_text(_how_narrow(comparison, comparison.until))
    _print_best(comparison)
    _print_words(comparison, in_words)
    if "jct_mean_s" in comparison.values[comparison.variants[0]]:
        _print_parts(comparison)


def _print_table(comparison: Comparison) -> None:
    """Print a row per metric and variant: values, difference from the baseline, verdict."""
    baseline = comparison.variants[0]
    rows = []
    for metric in comparison.metrics:
        rows.append((metric, baseline, _spread(comparison.values[baseline][metric]), "", ""))
        for policy in comparison.variants[1:]:
            compared = comparison.differences[policy][metric]
            spread = _spread(comparison.values[policy][metric])
            verdict = (
                "exact on this trace"
                if policy in comparison.exact(metric)
                else _verdict(compared, comparison.kind, comparison.equivalence)
            )
            rows.append(("", policy, spread, interval_text(metric, compared), verdict))
        if metric == "makespan_s":
            rows += [("", name, _spread(bound), "", "") for name, bound in _bounds(comparison)]
    columns = (
        "metric",
        comparison.setting,
        "median [min .. max]",
        f"against {baseline}, {level_text(comparison.level)} %",
        "verdict",
    )
    title = f"{comparison.design}, paired; changes are those of geometric means"
    print_table(title, columns, rows)


def _print_family(comparison: Comparison) -> None:
    """Print which comparisons of the table are judged together, and whether that matters."""
    exact = any(map(comparison.exact, comparison.metrics))
    if comparison.cancelled or (not comparison.family and exact):
        return
    each = "each policy" if comparison.setting == "policy" else f"each {comparison.setting}"
    what = f"{each} against {comparison.variants[0]}, on each metric of the table"
    print_text(family_words(comparison.family, what))
    every = [one for metrics in comparison.differences.values() for one in metrics.values()]
    if any(map(undecided_together, every)):
        print_text(
            "So some are undecided that would be decided on their own: fewer policies or metrics "
            "need fewer replicates."
        )


def _print_best(comparison: Comparison) -> None:
    """Print which variants are best on each metric, and how sure that is."""
    if comparison.cancelled:
        return
    best_variants = comparison.best_variants()
    for best in best_variants:
        print_text(
            best_sentence(
                best, f"{short(best.value)}{unit_after(best.metric)}", comparison.equivalence
            )
        )
    family = max((best.family for best in best_variants), default=0)
    if family or not any(best.exactly for best in best_variants):
        print_text(family_words(family, "all pairs, on the metrics of the sentences above"))
    if sentence := what_to_ask_next(comparison, best_variants):
        print_text(sentence)


def _print_words(comparison: Comparison, metrics: Sequence[str]) -> None:
    """Print a sentence per metric and verdict, and the lower bound of the makespan."""
    baseline = comparison.variants[0]
    for metric in metrics:
        if metric not in comparison.values[baseline]:
            continue
        compared = {
            policy: comparison.differences[policy][metric] for policy in comparison.variants[1:]
        }
        for sentence in sentences(
            metric, baseline, compared, comparison.equivalence, comparison.exact(metric)
        ):
            print_text(f"{sentence.side.value}: {sentence.text}")
    if "makespan_s" in metrics and comparison.bounds_s:
        limits = [f"{_range(comparison.bound_s)} s"] if comparison.bound_s else [
            f"{_range(bound)} s with {label}" for label, bound in comparison.bounds_s.items()
        ]  # fmt: skip
        print_text(
            f"No policy can finish all jobs in less than {', '.join(limits)} "
            "(lower bound: artist explain makespan_bound_s)."
        )


def _bounds(comparison: Comparison) -> list[tuple[str, tuple[float, ...]]]:
    """Names and values of the bounds' rows: one row where all variants have the same bound."""
    if comparison.bound_s:
        return [("(lower bound)", comparison.bound_s)]
    return [(f"(lower bound of {one})", bound) for one, bound in comparison.bounds_s.items()]


def _range(values: tuple[float, ...]) -> str:
    low, high = short(min(values)), short(max(values))
    return low if low == high else f"{low} to {high}"


def _whole(seconds: float) -> str:
    """A difference in whole seconds with its sign; one that rounds to 0 is `+0`."""
    return f"{round(seconds):+,d}"


def _print_parts(comparison: Comparison) -> None:
    """Print the difference of each policy's mean JCT to the baseline, and its parts."""
    baseline, *others = comparison.variants
    told, rows = [*comparison.parts[baseline]], []
    for policy in others:
        parts = comparison.differences_of_parts(policy)
        values = comparison.values
        whole = fmean(values[policy]["jct_mean_s"]) - fmean(values[baseline]["jct_mean_s"])
        sure = comparison.differences[policy]["jct_mean_s"].verdict in (LESS, MORE)
        share = f"{100 * parts['communication'] / whole:.0f} %" if sure and whole else ""
        rows.append((policy, _whole(whole), *(_whole(parts[one]) for one in told), share))
    columns = (
        comparison.setting,
        "JCT mean (s)",
        *(f"{part} (s)" for part in told),
        "communication's part",
    )
    print_table(
        f"what the difference from {baseline} is made of, mean over replicates", columns, rows
    )
    print_text(
        "Arithmetic means, so the parts add up to the difference. A part has a share where the "
        "verdict is sure."
    )


def _how_narrow(comparison: Comparison, until: float) -> str:
    """Whether all intervals are as narrow as `--until` asks, or how many replicates are missing."""
    copies, every = comparison.without_interval, "every"
    note = ""
    if copies:
        every = "every other"
        note = f"; {copies} of the comparisons have no interval: their replicates are copies of one"
    if comparison.missing == 0:
        return f"{every} interval reaches at most {percent(until)} % from its middle{note}"
    widest, missing = comparison.widest, comparison.missing
    more = f"more than {MOST_REPLICATES:,}" if missing is None else f"about {missing:,} more"
    return (
        f"the budget ended: {widest.metric} of {widest.variant} reaches "
        f"{percent(widest.half_width)} % from its middle; {more} "
        f"{comparison.kind} would make it {percent(until)} %{note}"
    )


def _spread(values: tuple[float, ...]) -> str:
    middle, low, high = (short(value) for value in (median(values), min(values), max(values)))
    return f"{middle} [{low} .. {high}]"


def _verdict(compared: ComparedValues, kind: str, equivalence: float) -> str:
    if sure_but_within(compared, equivalence):
        return f"{compared.verdict}; by less than {100 * equivalence:g} %"
    if compared.verdict == TOO_FEW and compared.replicates == 1:
        return f"{compared.verdict}: copies of one"
    return "; ".join(text for text in (compared.verdict, what_may_decide(compared, kind)) if text)
