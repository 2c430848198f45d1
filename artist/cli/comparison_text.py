"""Prints a comparison: a table, sentences, and what the differences of the mean JCT are made of."""

from __future__ import annotations

from dataclasses import asdict
from math import isfinite, isnan
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from artist.cli.output import print_table, print_text
from artist.results.caveats import FREE_PREEMPTIONS, more_is_worse
from artist.results.terms.chief_metrics import IN_WORDS
from artist.results.terms.number_text import listed, percent, short

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from artist.experiments.comparison.comparison_result import Comparison
    from artist.results.statistics.best_policy import Best
    from artist.results.statistics.compare_values import ComparedValues


LEVEL = 0.95
METHOD = "Student's t of paired log ratios (differences where a value is 0), Holm over the family"


def print_comparison(comparison: Comparison, in_words: Sequence[str] = IN_WORDS) -> None:
    """Print the table, the best policies, sentences about the metrics `in_words`, the parts."""
    _print_table(comparison)
    _print_family(comparison)
    if comparison.preempts_freely:
        print_text(FREE_PREEMPTIONS)
    if comparison.until is not None:
        print_text(_how_narrow(comparison, comparison.until))
    _print_best(comparison)
    _print_words(comparison, in_words)
    if "jct_mean_s" in comparison.values[comparison.variants[0]]:
        _print_parts(comparison)


def _print_table(comparison: Comparison) -> None:
    """Print a row per metric and variant: values, difference to the baseline, verdict."""
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
            rows.append(("", policy, spread, _interval(metric, compared), verdict))
        if metric == "makespan_s":
            rows += [("", name, _spread(bound), "", "") for name, bound in _bounds(comparison)]
    columns = (
        "metric",
        comparison.setting,
        "median [min .. max]",
        f"against {baseline}, 95 %",
        "verdict",
    )
    print_table(f"{comparison.design}, paired", columns, rows)


def _print_family(comparison: Comparison) -> None:
    """Print which comparisons of the table are judged together, and whether that matters."""
    from artist.report.verdict_sentences import family_words
    from artist.results.statistics.holm import undecided_together

    if not comparison.family and any(map(comparison.exact, comparison.metrics)):
        return
    each = "each policy" if comparison.setting == "policy" else f"each {comparison.setting}"
    what = f"{each} against {comparison.variants[0]}, on each metric of the table"
    print_text(family_words(comparison.family, what))
    every = [one for metrics in comparison.differences.values() for one in metrics.values()]
    if any(map(undecided_together, every)):
        print_text(
            "So some are undecided that would not be alone: fewer policies or metrics need fewer "
            "replicates."
        )


def _print_best(comparison: Comparison) -> None:
    """Print which variants are best on each metric, and what that is worth."""

    from artist.report.verdict_sentences import best_sentence, family_words
    from artist.results.statistics.catastrophes import unseen
    from artist.results.statistics.compare_values import MORE
    from artist.results.terms.glossary import unit_after

    best_variants = comparison.best_variants()
    for best in best_variants:
        print_text(
            best_sentence(
                best, f"{short(best.value)}{unit_after(best.metric)}", comparison.equivalence
            )
        )
    family = max((best.family for best in best_variants), default=0)
    told = ""
    if family or not any(best.exactly for best in best_variants):
        told = f"{family_words(family, 'all pairs, on the metrics of the sentences above')} "
    if any(best.with_verdict(MORE) for best in best_variants):
        over = "draws of the trace" if comparison.kind == "seeds" else "orders on this trace"
        missed = percent(unseen(comparison.independent))
        print_text(
            f"Surely means: over {over}, in this world; --across fabrics and --assumptions ask "
            f"about others. What happens in up to {missed} % of runs may not have shown in these "
            f"{comparison.independent}."
        )
    if any(best.others for best in best_variants):
        print_text(
            f"These are means. {told}The verdicts below are those of the table, against "
            f"{comparison.variants[0]} only."
        )
    for sentence in notes_on_the_best(comparison, best_variants):
        print_text(sentence)


def _print_words(comparison: Comparison, metrics: Sequence[str]) -> None:
    """Print a sentence per metric and verdict, and the lower bound of the makespan."""

    from artist.report.verdict_sentences import sentences

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
    """A difference in whole seconds with its sign; what rounds to nothing is `+0`."""
    return f"{round(seconds):+,d}"


def _print_parts(comparison: Comparison) -> None:
    """Of each policy: the difference of the mean JCT to the baseline, and its parts."""
    from artist.results.statistics.compare_values import LESS, MORE
    from artist.results.terms.chief_metrics import PARTS

    baseline, *others = comparison.variants
    rows = []
    for policy in others:
        parts = comparison.differences_of_parts(policy)
        values = comparison.values
        whole = fmean(values[policy]["jct_mean_s"]) - fmean(values[baseline]["jct_mean_s"])
        sure = comparison.differences[policy]["jct_mean_s"].verdict in (LESS, MORE)
        share = f"{parts['communication'] / whole:.0%}" if sure and whole else ""
        rows.append((policy, _whole(whole), *(_whole(parts[one]) for one in PARTS), share))
    columns = (
        comparison.setting,
        "JCT mean (s)",
        *(f"{part} (s)" for part in PARTS),
        "communication's part",
    )
    print_table(
        f"what the difference to {baseline} is made of, mean over replicates", columns, rows
    )
    print_text("The parts add up to the difference. A part has a share where the verdict is sure.")


def _how_narrow(comparison: Comparison, until: float) -> str:
    """How far `--until` came: all intervals are narrow, or how many replicates are missing."""
    copies, every = comparison.without_interval, "every"
    note = ""
    if copies:
        every = "every other"
        note = f"; {copies} of the comparisons have no interval: their replicates are copies of one"
    if comparison.missing == 0:
        return f"{every} interval reaches at most {percent(until)} % from its middle{note}"
    from artist.results.statistics.compare_values import MOST_REPLICATES

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


def _interval(metric: str, compared: ComparedValues) -> str:
    """A share where there is a ratio, else a difference; empty where nothing differs."""
    if compared.verdict == "identical":
        return ""
    numbers = (compared.difference, compared.low, compared.high)
    if isnan(compared.ratio):
        from artist.results.terms.glossary import unit_after

        middle, *ends = (f"{_signed(value)}{unit_after(metric)}" for value in numbers)
    else:
        middle, *ends = (f"{x - 1:+.1%}" for x in (compared.ratio, compared.low, compared.high))
    return middle if isnan(compared.low) else f"{middle} [{' .. '.join(ends)}]"


def _signed(value: float) -> str:
    return f"{'-' if value < 0 else '+'}{short(abs(value))}"


def _verdict(compared: ComparedValues, kind: str, equivalence: float) -> str:
    from artist.report.verdict_sentences import what_would_decide
    from artist.results.statistics.compare_values import TOO_FEW, sure_but_within

    if sure_but_within(compared, equivalence):
        return f"{compared.verdict}; by less than {100 * equivalence:g} %"
    if compared.verdict == TOO_FEW and compared.replicates == 1:
        return f"{compared.verdict}: copies of one"
    return "; ".join(text for text in (compared.verdict, what_would_decide(compared, kind)) if text)


def as_json(comparison: Comparison) -> dict[str, Any]:
    """The comparison for JSON: numbers that are not finite are null."""
    from artist.results.statistics.holm import adjusted_p_values

    keys = [
        (variant, metric) for variant in comparison.differences for metric in comparison.metrics
    ]
    every = [comparison.differences[variant][metric] for variant, metric in keys]
    adjusted = dict(zip(keys, adjusted_p_values(every), strict=True))
    return {
        "setting": comparison.setting,
        "method": METHOD,
        "level": LEVEL,
        "design": comparison.design,
        "equivalence": comparison.equivalence,
        "variants": list(comparison.variants),
        "replicates": [{"seed": s, "permutation": p} for s, p in comparison.replicates],
        "until": comparison.until,
        "widest": _finite(comparison.widest._asdict()),
        "missing": comparison.missing,
        "judged_together": comparison.family,
        "values": {policy: dict(metrics) for policy, metrics in comparison.values.items()},
        "differences": {
            policy: [
                {"metric": metric}
                | _finite(asdict(one))
                | {"adjusted_p_value": adjusted[policy, metric]}
                for metric, one in metrics.items()
            ]
            for policy, metrics in comparison.differences.items()
        },
        "jct_mean_parts_s": {policy: dict(parts) for policy, parts in comparison.parts.items()},
        "catastrophes": [one._asdict() for one in comparison.catastrophes()],
        "makespan_bound_s": {label: list(bound) for label, bound in comparison.bounds_s.items()},
    }


def _finite(record: dict[str, Any]) -> dict[str, Any]:
    """The record for JSON, which has no NaN and no infinity: both become null."""
    return {
        key: None if isinstance(value, float) and not isfinite(value) else value
        for key, value in record.items()
    }


def notes_on_the_best(comparison: Comparison, best_variants: Sequence[Best]) -> Iterator[str]:
    """Sentences that help to judge the best variants, those that apply."""
    for one in (_what_would_decide, _oracles, _beaten_oracles):
        if sentence := one(comparison, best_variants):
            yield sentence
    yield from _catastrophe(comparison)
    yield from _more_is_worse(comparison)
    yield from _of_which_traces(comparison)


_MOST_PROPOSED = 1000
"""A suggestion never asks for more replicates than this."""


def _what_would_decide(comparison: Comparison, best_variants: Sequence[Best]) -> str:
    """The options that would decide between the best variants and their open competitors.

    The number of replicates is that of the pair that needs most.
    """
    from artist.results.statistics.compare_values import LESS, UNDECIDED

    verdicts = (UNDECIDED, LESS)
    open_ = [best for best in best_variants if best.with_verdict(*verdicts)]
    enough = [best.others[one].enough for best in open_ for one in best.with_verdict(*verdicts)]
    counts = [count for count in enough if count is not None and count <= _MOST_PROPOSED]
    if not counts:
        return ""
    asked = {one for best in open_ for one in (*best.policies, *best.with_verdict(*verdicts))}
    names = ",".join(one for one in comparison.variants if one in asked)
    policies = f"--policies {names} " if comparison.setting == "policy" else ""
    return (
        f"To decide what is undecided among the best: {policies}--{comparison.kind} {max(counts)}, "
        "or --until 2%."
    )


def _oracles(comparison: Comparison, best_variants: Sequence[Best]) -> str:
    """Name the best policies that know run times, and the best policy that does not."""
    if comparison.setting != "policy":
        return ""
    from artist.policies.run_times import KNOWS, knows_run_times

    oracles = [policy for policy in comparison.variants if knows_run_times(policy)]
    best = [one for one in oracles if any(one in each.policies for each in best_variants)]
    if not best:
        return ""
    told = f"{listed(best)} {'knows' if len(best) == 1 else 'know'} the {KNOWS}, as no real "
    told += "scheduler does"
    others = [policy for policy in comparison.variants if policy not in oracles]
    if not others or "jct_mean_s" not in comparison.metrics:
        return f"{told}."
    means = {policy: fmean(comparison.values[policy]["jct_mean_s"]) for policy in others}
    lowest = min(means, key=lambda policy: means[policy])
    return f"{told}; of the others {lowest} has the lowest average JCT, {short(means[lowest])} s."


def _beaten_oracles(comparison: Comparison, best_variants: Sequence[Best]) -> str:
    """Name the policies that know run times, and surely have a longer mean JCT than one that does
    not."""
    if comparison.setting != "policy":
        return ""
    from artist.policies.run_times import KNOWS, knows_run_times
    from artist.results.statistics.compare_values import MORE

    for best in best_variants:
        if best.metric != "jct_mean_s" or any(map(knows_run_times, best.policies)):
            continue
        beaten = [one for one in best.with_verdict(MORE) if knows_run_times(one)]
        if beaten:
            know, have = ("knows", "has") if len(beaten) == 1 else ("know", "have")
            return (
                f"{listed(beaten)} {know} the {KNOWS} and {have} a longer average JCT than "
                f"{listed(best.policies)}: here it matters more where jobs run than in which "
                "order; --set policy.placement=consolidate-or-wait keeps them together."
            )
    return ""


def _catastrophe(comparison: Comparison) -> Iterator[str]:
    """The replicate that lies farthest above the others of its variant, if it is far off."""
    from artist.report.verdict_sentences import metric_name

    for one in comparison.catastrophes()[:1]:
        yield (
            f"{one.variant} with seed {one.seed} and permutation {one.permutation} has a "
            f"{metric_name(one.metric)} {short(one.factor)} times its median: few replicates judge "
            f"such rare catastrophes badly, so take more (--{comparison.kind} 20), and look at "
            f"this run (--set permutation={one.permutation} --seed {one.seed} --out RUN)."
        )


def _more_is_worse(comparison: Comparison) -> Iterator[str]:
    """Where more GPUs, faster links or fewer jobs made things much worse."""
    for metric, name in (("makespan_s", "makespan"), ("jct_mean_s", "mean JCT")):
        means = {
            label.partition("=")[2]: fmean(comparison.values[label].get(metric, (0.0,)))
            for label in comparison.variants
        }
        if sentence := more_is_worse(comparison.setting, name, means):
            yield sentence
            return


def _of_which_traces(comparison: Comparison) -> Iterator[str]:
    """Sentences on whether the verdicts hold for this trace only, and how to ask about others."""
    if any(map(comparison.exact, comparison.metrics)):
        yield (
            "Exact: the same under all permutations, so it is no effect of the order. It holds for "
            "this trace."
        )
        if not comparison.drawn:
            yield (
                "For others, draw arrivals with --arrivals poisson:JOBS_PER_HOUR --seeds 8, or run "
                "it on several traces."
            )
    if comparison.one_draw:
        yield "All of this is about one draw of the trace; --seeds 8 asks about other draws."
