"""Prints a comparison: the answer, a table of a dozen rows, caveats.

`comparison_details.py` has the rest. The table has a row for each variant, and for each of the
first metrics its mean and its difference from the baseline. A difference in percent is the one
between the means next to it. If a table has geometric and arithmetic means, the latter are marked.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from artist.cli.comparison_details import print_details
from artist.cli.comparison_notes import notes
from artist.cli.costs_text import cheapest, print_costs
from artist.cli.output import print_heading, print_table, print_text
from artist.cli.remarks import ABOUT, fitted_before, remarks, same_with_turns
from artist.cluster.fabric_options import changes_text
from artist.config import Scenario
from artist.estimates.sensitivity import LITTLE
from artist.experiments.comparison.across import Across, World
from artist.experiments.comparison.comparison_result import Comparison
from artist.experiments.comparison.costs import PriceFile, priced
from artist.report.answer import answer, unit_of
from artist.report.failure_costs import within_failures
from artist.report.metric_text import JOINTLY, interval_text, value_text
from artist.report.verdict_sentences import metric_name, share_text
from artist.results.caveats import FREE_PREEMPTIONS
from artist.results.statistics.catastrophes import unseen
from artist.results.statistics.compare_values import (
    IDENTICAL,
    LESS,
    MORE,
    NO_DIFFERENCE,
    ComparedValues,
    sure_but_within,
)
from artist.results.statistics.replicate_means import are_geometric
from artist.results.terms.chief_metrics import IN_WORDS
from artist.results.terms.number_text import level_text, percent
from artist.run import build_calibration, build_fabric
from artist.run.communication_split import Split, communication_split
from artist.run.world import measured_part, what_slows, world
from artist.units import counted

ONE_LOOK = 0.95
"""The level of an interval if the comparison was judged only once."""

MOST_ROWS = 12
MOST_METRICS = 3
"""Metrics of the table; more would not fit into the width of a terminal."""

REST = (
    "More: --all (ranges, parts of the JCT, what to ask next), --values FILE.csv (every value), "
    "artist explain WORD."
)


def print_comparison(comparison: Comparison, also: Sequence[str], scenario: Scenario) -> None:
    """Print the answer and other sentences, the table, what its verdicts mean, and caveats."""
    said = [*answer(comparison), *also]
    for sentence in said:
        print_text(sentence)
    columns, rows = _table(comparison)
    print_table(_title(comparison, len(rows)), columns, rows)
    jointly = any(JOINTLY in text for text in itertools.chain(said, *rows))
    print_text(_what_verdicts_mean(comparison, jointly=jointly))
    if comparison.preempts_freely:
        print_text(FREE_PREEMPTIONS)
    for sentence in notes(comparison, scenario):
        print_text(sentence)


def scope(comparison: Comparison) -> str:
    """The jobs, GPUs and replicates of a comparison, as a part of a sentence."""
    jobs, gpus = ({*each.values()} for each in (comparison.jobs, comparison.gpus))
    traces = {*comparison.traces.values()}
    on = f"{counted(min(jobs), 'job')} of {traces.pop()}" if len(jobs | traces) == 2 else ""
    most = counted(max(gpus), "GPU")
    where = most if len(gpus) == 1 else f"{min(gpus):,} to {most}"
    draw = " of one draw" if comparison.one_draw else ""
    count = counted(comparison.independent, comparison.kind.removesuffix("s"))
    return ", ".join(filter(None, (on, where, f"{count}{draw}")))


def _table(comparison: Comparison) -> tuple[list[str], list[list[str]]]:
    """The names of the columns, and a row per variant."""
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
    geometric = _geometric(comparison)
    some = any(geometric.values())
    names = [
        metric_name(metric) + (", arithmetic" if some and not geometric[metric] else "")
        for metric in metrics
    ]
    level = f"{level_text(comparison.level)} %"
    columns = [cell for name in names for cell in (name, f"against {baseline}, {level}")]
    return [comparison.setting, *columns], rows


def _title(comparison: Comparison, shown: int) -> str:
    """Which rows and columns the table leaves out."""
    left_out = [
        f"{kept} of {there} {what}"
        for kept, there, what in (
            (shown, len(comparison.variants), "variants"),
            (min(MOST_METRICS, len(comparison.metrics)), len(comparison.metrics), "metrics"),
        )
        if kept < there
    ]
    replicates = counted(comparison.independent, comparison.kind.removesuffix("s"))
    means = f"{'geometric ' if any(_geometric(comparison).values()) else ''}means"
    return f"{means} of {replicates}, paired" + (f"; {', '.join(left_out)}" if left_out else "")


def _geometric(comparison: Comparison) -> dict[str, bool]:
    """Metric of the table -> whether its means are geometric ones."""
    return {
        one: are_geometric(x for each in comparison.values.values() for x in each[one])
        for one in comparison.metrics[:MOST_METRICS]
    }


def _shown(comparison: Comparison) -> Sequence[str]:
    """The variants of the table: policies sorted by the first metric, settings as given."""
    if comparison.setting != "policy":
        return comparison.variants[:MOST_ROWS]
    baseline, means = comparison.variants[0], comparison.means(comparison.metrics[0])
    by_mean = sorted(comparison.variants, key=lambda one: means[one])
    kept = by_mean[:MOST_ROWS]
    return kept if baseline in kept else [*kept[: MOST_ROWS - 1], baseline]


def _means(comparison: Comparison, metric: str, variants: Sequence[str]) -> dict[str, str]:
    """Variant -> its mean, in one unit for all."""
    means, unit = comparison.means(metric), unit_of(comparison, metric)
    return {one: value_text(metric, means[one], unit) for one in variants}


def _against(comparison: Comparison, variant: str, metric: str) -> str:
    """The difference from the baseline with its interval, and the verdict."""
    if variant == comparison.variants[0]:
        return ""
    compared = comparison.differences[variant][metric]
    interval = interval_text(metric, compared, unit_of(comparison, metric))
    if variant in comparison.exact(metric):
        return f"{interval} exact"
    return f"{interval} {verdict_text(compared, comparison)}".strip()


def verdict_text(compared: ComparedValues, comparison: Comparison) -> str:
    """The verdict; it says so if a significant difference is small."""
    if sure_but_within(compared, comparison.equivalence):
        return f"{compared.verdict}, but within {share_text(comparison.equivalence)}"
    return str(compared.verdict)


def _what_verdicts_mean(comparison: Comparison, *, jointly: bool) -> str:
    """One line: which values are judged together, and what few replicates cannot show.

    `jointly`: whether an interval in the table is marked with this word.
    """
    if comparison.cancelled:
        return (
            "other jobs: jobs that a variant cancelled have no completion time, so nothing is "
            "judged."
        )
    every = [one for metrics in comparison.differences.values() for one in metrics.values()]
    if not comparison.family:
        if any(map(comparison.exact, comparison.metrics)):
            return "exact: the same under all orders of machines, on this trace."
        if all(one.verdict == IDENTICAL for one in every):
            return "identical: equal on every replicate."
        return "No verdict: fewer than five independent replicates, or all are copies of one."
    judged = [*within_failures(comparison).values()] or [comparison]
    pairs = sum(max((best.family for best in one.best_variants()), default=0) for one in judged)
    text = f"Less, more and surely are right in {level_text(comparison.level)} % of cases"
    if comparison.level > ONE_LOOK:
        text += " (several looks share the 5 %: artist explain confidence)"
    if comparison.family > 1 or pairs > 1:
        text += f": {counted(comparison.family, 'difference')} of the table"
        text += f" and {pairs} pairs" if pairs > 1 else ""
        text += " are judged together (Holm)"
    text += "."
    if jointly:
        text += " An interval marked jointly is wider for that reason."
    margin = 1 + comparison.equivalence
    alike = [one for one in every if one.verdict == NO_DIFFERENCE]
    if any(one.low < 1 / margin or one.high > margin for one in alike):
        text += (
            f" No difference: the {level_text(2 * comparison.level - 1)} % interval, narrower than "
            f"the one shown, lies within {share_text(comparison.equivalence)}."
        )
    if any(one.verdict in (LESS, MORE) for one in every):
        missed, count = percent(unseen(comparison.independent)), comparison.independent
        text += (
            f" {count} runs of each may all have been lucky: what goes wrong in up to {missed} % "
            "of runs may not be among them."
        )
    return text


_BANDWIDTHS = ("bandwidth", "bandwidth_gib_per_s")
_LINKS = (*_BANDWIDTHS, "latency", "latency_ns")


def what_links_decide(comparison: Comparison, scenario: Scenario) -> Iterator[str]:
    """A sentence for each level whose bandwidth or latency varies.

    It takes one more run of the first variant.
    """
    varied: dict[str, list[str]] = {}
    for key in dict.fromkeys(key for point in comparison.points.values() for key in point):
        group, _, rest = key.partition(".")
        level, _, name = rest.rpartition(".")
        if group == "fabric" and name in _LINKS:
            varied.setdefault(level, []).append(key)
    for level, keys in varied.items():
        policy = {"policy": comparison.policy}
        found = communication_split(scenario.model_copy(update=policy), level)
        if found is None:
            continue
        little = any(key.endswith(_BANDWIDTHS) and _changes_little(comparison, key) for key in keys)
        begin = f"More bandwidth of {level} changes little: under" if little else "Under"
        yield (
            f"{begin} {comparison.policy}, communication is {percent(found.held)} % of the GPU "
            f"time that jobs hold in one run; {_where(found, level)}."
        )


def _where(found: Split, level: str) -> str:
    """How much of the communication crosses a level, and what it waits for there."""
    past = sum(found.past.values())
    none = f"{100 * past:.0f} % of it belongs to jobs that do not cross {level}"
    if past < 1:
        return f"{none}; of the rest, {found.across}"
    shares = {name: round(100 * share) for name, share in found.past.items()}
    outermost = [f"{name} {shares[name]} %" for name in sorted(shares, key=lambda x: -shares[x])]
    return f"{none} (outermost level: {', '.join(outermost)})"


def _changes_little(comparison: Comparison, key: str) -> bool:
    """Whether the first metric hardly changes between variants that differ only in this setting."""
    means = comparison.means(comparison.metrics[0])
    groups: dict[tuple[tuple[str, str], ...], list[float]] = {}
    for variant, point in comparison.points.items():
        rest = tuple(pair for pair in point.items() if pair[0] != key)
        groups.setdefault(rest, []).append(means[variant])
    return all(max(each) - min(each) <= LITTLE * max(each) for each in groups.values())


def print_whole(
    comparison: Comparison,
    scenario: Scenario,
    costs: PriceFile | None,
    remarked: Sequence[str],
    cut: Sequence[str],
    *,
    named: bool,
    all_: bool,
) -> None:
    """Print the assumptions, the answer, the table and caveats."""
    varied = _settings(comparison)
    about = [] if varied & {"fabric", "cluster", "backend", "calibration"} else [world(scenario)]
    slowed, part = what_slows(scenario, varied), measured_part(scenario, varied)
    print_heading("; ".join([*about, *slowed, scope(comparison), *part]))
    found = [] if costs is None else priced(comparison, costs)
    also = [cheapest(found, costs)] if costs is not None else []
    also = [*cut, *also, *what_links_decide(comparison, scenario)]
    print_comparison(comparison, also, scenario)
    if costs is not None:
        print_costs(found, costs, comparison.setting)
    if "policy" not in varied:
        print_text(f"Every run has policy {comparison.policy}.")
    _print_changes(scenario, comparison)
    turns = [] if "contention" in varied else same_with_turns(comparison, scenario)
    for remark in (*(() if varied & {*ABOUT} else remarks(scenario)), *remarked, *turns):
        if remark:
            print_text(remark)
    if all_:
        print_details(comparison, comparison.metrics if named else IN_WORDS)
    else:
        print_text(REST)


def _settings(comparison: Comparison) -> set[str]:
    """The settings that differ between variants."""
    return {key for point in comparison.points.values() for key in point}


def print_worlds(made: Across, worlds: Sequence[World], *, assumptions: bool, all_: bool) -> None:
    """Print in which worlds verdicts hold, or which assumptions decide them."""
    from artist.cli import across_text

    if assumptions:
        given = worlds[0].scenario
        print_heading("; ".join([world(given), *what_slows(given), *measured_part(given)]))
        across_text.print_assumptions(made, all_=all_)
        return
    for one in worlds:
        given = one.scenario
        about = "; ".join([world(given), *what_slows(given), *measured_part(given)])
        print_heading(f"{one.label}: {about}")
    across_text.print_across(made)


def _print_changes(scenario: Scenario, comparison: Comparison) -> None:
    """Print below the table how the fabric was changed, and whether the calibration fits it."""
    changes = changes_text(scenario.fabric_options)
    if changes:
        print_text(f"Fabric {scenario.fabric} is changed: {changes}.")
    varied = sorted(key for key in _settings(comparison) if key.startswith("fabric."))
    changes = ", ".join(filter(None, [changes, *varied]))
    fabric = build_fabric(scenario)
    if sentence := fitted_before(build_calibration(scenario, fabric), fabric, changes):
        print_text(sentence)
