"""Prints a comparison: the answer, a table of a dozen rows, caveats.

`comparison_details.py` has the rest. The table has a row for each variant, and for each of the
first metrics its mean and its difference to the baseline. A difference in percent is that of the
means beside it, which are geometric.
"""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING

from artist.cli.comparison_notes import notes
from artist.cli.output import print_table, print_text
from artist.report.answer import answer, value_text
from artist.report.verdict_sentences import metric_name, share_text
from artist.results.caveats import FREE_PREEMPTIONS
from artist.results.statistics.catastrophes import unseen
from artist.results.statistics.compare_values import (
    IDENTICAL,
    LESS,
    MORE,
    ComparedValues,
    sure_but_within,
)
from artist.results.statistics.holm import undecided_together
from artist.results.terms.glossary import unit_after
from artist.results.terms.number_text import HOUR, percent, short, time_unit
from artist.units import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from artist.experiments.comparison.comparison_result import Comparison

ONE_LOOK = 0.95
"""The level of a comparison at which nobody looked before."""

MOST_ROWS = 12
MOST_METRICS = 3
"""More would not fit into the width of a terminal."""

REST = (
    "More: --all (ranges, parts of the JCT, what to ask next), --values FILE.csv (every value), "
    "artist explain WORD."
)


def print_comparison(comparison: Comparison, also: Sequence[str] = ()) -> None:
    """Print the answer and other sentences, the table, what its verdicts mean, and caveats."""
    for sentence in (*answer(comparison), *also):
        print_text(sentence)
    _print_table(comparison)
    print_text(_what_verdicts_mean(comparison))
    if comparison.cancelled:
        print_text(comparison.cancelled)
    if comparison.preempts_freely:
        print_text(FREE_PREEMPTIONS)
    for sentence in notes(comparison):
        print_text(sentence)


def scope(comparison: Comparison) -> str:
    """On which jobs, GPUs and replicates a comparison was made, as a part of a sentence."""
    jobs, gpus = ({*each.values()} for each in (comparison.jobs, comparison.gpus))
    traces = {*comparison.traces.values()}
    on = f"{counted(min(jobs), 'job')} of {traces.pop()}" if len(jobs | traces) == 2 else ""
    where = f"{min(gpus):,} GPUs" if len(gpus) == 1 else f"{min(gpus):,} to {max(gpus):,} GPUs"
    draw = " of one draw" if comparison.one_draw else ""
    count = counted(comparison.independent, comparison.kind.removesuffix("s"))
    return ", ".join(filter(None, (on, where, f"{count}{draw}")))


def _print_table(comparison: Comparison) -> None:
    baseline = comparison.variants[0]
    metrics = comparison.metrics[:MOST_METRICS]
    shown = _shown(comparison)
    means = {metric: _means(comparison, metric, shown) for metric in metrics}
    rows = []
    for variant in shown:
        row = [variant]
        for metric in metrics:
            row += [means[metric][variant], _against(comparison, variant, metric)]
        rows.append(row)
    names = [metric_name(metric) for metric in metrics]
    level = f"{100 * comparison.level:g} %"
    columns = [cell for name in names for cell in (name, f"against {baseline}, {level}")]
    print_table(_title(comparison, len(shown)), (comparison.setting, *columns), rows)


def _title(comparison: Comparison, shown: int) -> str:
    """What the rows and columns leave out."""
    left_out = [
        f"{kept} of {there} {what}"
        for kept, there, what in (
            (shown, len(comparison.variants), "variants"),
            (min(MOST_METRICS, len(comparison.metrics)), len(comparison.metrics), "metrics"),
        )
        if kept < there
    ]
    replicates = counted(comparison.independent, comparison.kind.removesuffix("s"))
    means = f"{'geometric ' if _all_geometric(comparison) else ''}means"
    return f"{means} of {replicates}, paired" + (f"; {', '.join(left_out)}" if left_out else "")


def _all_geometric(comparison: Comparison) -> bool:
    """Whether all means of the table are geometric ones."""
    metrics = comparison.metrics[:MOST_METRICS]
    return all(min(each[one]) > 0 for each in comparison.values.values() for one in metrics)


def _shown(comparison: Comparison) -> Sequence[str]:
    """The variants of the table: policies by their first metric, settings as they were given."""
    if comparison.setting != "policy":
        return comparison.variants[:MOST_ROWS]
    baseline, means = comparison.variants[0], comparison.means(comparison.metrics[0])
    by_mean = sorted(comparison.variants, key=lambda one: means[one])
    kept = by_mean[:MOST_ROWS]
    return kept if baseline in kept else [*kept[: MOST_ROWS - 1], baseline]


def _means(comparison: Comparison, metric: str, variants: Sequence[str]) -> dict[str, str]:
    """Variant -> its mean, all in the unit that suits the least one."""
    means = {one: mean for one, mean in comparison.means(metric).items() if one in variants}
    unit = time_unit(min(means.values()))
    return {one: value_text(metric, mean, unit) for one, mean in means.items()}


def _against(comparison: Comparison, variant: str, metric: str) -> str:
    """The difference to the baseline with its interval, and the verdict."""
    if variant == comparison.variants[0]:
        return ""
    compared = comparison.differences[variant][metric]
    if variant in comparison.exact(metric):
        return f"{interval_text(metric, compared)} exact"
    return f"{interval_text(metric, compared)} {verdict_text(compared, comparison)}".strip()


def verdict_text(compared: ComparedValues, comparison: Comparison) -> str:
    """The verdict, and that a sure difference is small."""
    if sure_but_within(compared, comparison.equivalence):
        return f"{compared.verdict}, but within {share_text(comparison.equivalence)}"
    return str(compared.verdict)


def interval_text(metric: str, compared: ComparedValues) -> str:
    """`-6.4 % [-9.2 .. -3.6]`, or a difference in units where there is no ratio.

    What is undecided only since it is judged together with others has its joint interval.
    """
    if compared.verdict == "identical":
        return ""
    jointly = undecided_together(compared) and not isnan(compared.joint_low)
    ends = (compared.low, compared.high)
    if jointly:
        ends = (compared.joint_low, compared.joint_high)
    if isnan(compared.ratio):
        size, unit = (HOUR, " GPU-h") if metric.endswith("_gpu_s") else (1.0, unit_after(metric))
        middle, *ends_text = (_signed(value / size) for value in (compared.difference, *ends))
    else:
        unit = " %"
        middle, *ends_text = (_change(value) for value in (compared.ratio, *ends))
    if isnan(compared.low):
        return f"{middle}{unit}"
    return f"{middle}{unit} [{' .. '.join(ends_text)}{' jointly' if jointly else ''}]"


def _change(ratio: float) -> str:
    """A ratio as a change in percent with its sign."""
    value = 100 * (ratio - 1)
    text = f"{value:+,.0f}" if abs(value) >= 100 else f"{value:+.1f}"
    return "0.0" if text in ("-0.0", "+0.0") else text


def _signed(value: float) -> str:
    return f"{'-' if value < 0 else '+'}{short(abs(value))}"


def _what_verdicts_mean(comparison: Comparison) -> str:
    """What is judged together, and what so few replicates cannot show: one line."""
    if not comparison.family:
        if any(map(comparison.exact, comparison.metrics)):
            return "exact: the same under all orders of machines, on this trace."
        every = [one for metrics in comparison.differences.values() for one in metrics.values()]
        if all(one.verdict == IDENTICAL for one in every):
            return "identical: equal on every replicate."
        return "No verdict: fewer than five independent replicates, or all are copies of one."
    every = [one for metrics in comparison.differences.values() for one in metrics.values()]
    pairs = max((best.family for best in comparison.best_variants()), default=0)
    text = f"Less, more and surely are right in {100 * comparison.level:g} % of cases"
    if comparison.level > ONE_LOOK:
        text += " (several looks share the 5 %: artist explain confidence)"
    if comparison.family > 1 or pairs > 1:
        text += f": {counted(comparison.family, 'difference')} of the table"
        text += f" and {pairs} pairs" if pairs > 1 else ""
        text += " are judged together (Holm)"
    text += "."
    best = [one for each in comparison.best_variants() for one in each.others.values()]
    if any(map(undecided_together, [*every, *best])):
        text += " Jointly: the interval after that."
    if any(one.verdict in (LESS, MORE) for one in every):
        missed, count = percent(unseen(comparison.independent)), comparison.independent
        text += (
            f" {count} runs of each may all have been lucky: what goes wrong in up to {missed} % "
            "of runs may not be among them."
        )
    return text
