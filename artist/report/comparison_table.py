"""The numbers of the comparison table: every metric of every policy against a baseline policy.

Each pair is a replicate (a seed and a permutation) that both policies have.
`artist.results.statistics.compare_values` judges the pairs, as in `artist compare`. The verdicts of
a setting, on all metrics and policies of both its tables, hold together (Holm).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from artist.report.grouping import Setting
from artist.report.verdict_sentences import more_needed
from artist.results.statistics.compare_values import (
    EQUIVALENCE,
    IDENTICAL,
    LESS,
    MORE,
    ComparedValues,
    clusters_of,
    sure_but_within,
)
from artist.results.statistics.holm import Pair, compare_together, judged_together
from artist.results.statistics.replicate_means import replicate_means
from artist.results.terms.chief_metrics import OF_A_REPORT
from artist.results.terms.glossary import METRICS, Term
from artist.results.terms.number_text import DisplayUnit, plain

# These metrics describe the simulation, not the cluster. `wall_s` even differs between equal
# runs, and equal runs must give the same page.
_LEFT_OUT = frozenset({"latency_queries", "latency_backend_calls", "events", "wall_s"})

# From ten times on, "x 209" is easier to read than "+20800.0 %".
_TENFOLD = 10


@dataclass(frozen=True, slots=True)
class MetricCell:
    """One metric of one policy.

    `mean`, `low`, `high` and `count` describe all replicates of the policy. `mean` is geometric
    (`replicate_means.py`), so that a change in percent is that of two means.
    `difference` uses only the replicates that the baseline has too. It is None for the baseline.
    """

    mean: float
    low: float
    high: float
    count: int
    unit: str
    difference: ComparedValues | None

    @property
    def spread(self) -> str:
        """The range over the replicates as text; empty if all are equal."""
        return f"[{plain(self.low)} .. {plain(self.high)}]" if self.low < self.high else ""

    @property
    def against(self) -> str:
        """The difference as text, with its interval and verdict if there are several replicates."""
        compared = self.difference
        if compared is None or compared.verdict == IDENTICAL:
            return "" if compared is None else IDENTICAL
        middle, *ends = _three(compared)
        text = self._in_words(middle)
        if self.count == 1:
            return text
        if not math.isnan(compared.low):
            text += f" [{' .. '.join(map(self._in_words, ends))}]"
        more = more_needed(compared)
        if sure_but_within(compared, EQUIVALENCE):
            more = f"by less than {100 * EQUIVALENCE:g} %"
        return f"{text} {compared.verdict}" + (f"; {more}" if more else "")

    def _in_words(self, difference: float) -> str:
        assert self.difference is not None  # the caller has it
        if not math.isnan(self.difference.ratio):
            return relative(difference)
        sign = "-" if difference < 0 else "+"
        unit = "" if self.unit == "1" else f" {self.unit}"
        return f"{sign}{plain(abs(difference))}{unit}"

    @property
    def sure(self) -> bool:
        """Whether the policy has surely less or more than the baseline."""
        return self.difference is not None and self.difference.verdict in (LESS, MORE)


def scaled(cell: MetricCell, unit: DisplayUnit) -> MetricCell:
    """The same cell in another unit. Ratios stay."""
    size, compared = unit.seconds, cell.difference
    if compared is not None and math.isnan(compared.ratio):
        compared = replace(
            compared, difference=compared.difference / size, low=compared.low / size,
            high=compared.high / size,
        )  # fmt: skip
    return replace(
        cell, mean=cell.mean / size, low=cell.low / size, high=cell.high / size, unit=unit.name,
        difference=compared,
    )  # fmt: skip


Table: TypeAlias = list[tuple[Term, dict[str, MetricCell]]]
"""Rows: a metric, and its cell of each policy."""


def _three(compared: ComparedValues) -> tuple[float, float, float]:
    """Middle and ends of the interval, relative where there is a ratio."""
    if math.isnan(compared.ratio):
        return compared.difference, compared.low, compared.high
    return compared.ratio - 1, compared.low - 1, compared.high - 1


def compare_setting(setting: Setting, baseline: str) -> tuple[Table, Table]:
    """The tables of the main and of the other metrics that all runs have."""
    runs = [run for replicates in setting.runs.values() for run in replicates.values()]
    shown = [
        term
        for term in METRICS
        if term.name not in _LEFT_OUT and all(term.name in run.summary for run in runs)
    ]
    main = [term for term in shown if term.name in OF_A_REPORT]
    others = [term for term in shown if term.name not in OF_A_REPORT]
    judged = _table(setting, baseline, [*main, *others])
    return judged[: len(main)], judged[len(main) :]


def _table(setting: Setting, baseline: str, terms: Sequence[Term]) -> Table:
    """Rows of some metrics, with verdicts that hold together."""
    others = [policy for policy in setting.runs if policy != baseline]
    pairs = {
        (term.name, policy): pair
        for term in terms
        for policy in others
        if (pair := _pair(setting, policy, baseline, term.name)).replicates
    }
    compared = compare_together(pairs, same_jobs=not setting.cancelled)
    rows = []
    for term in terms:
        cells = {}
        for policy, mean in _means(setting, term.name).items():
            values = list(setting.values(policy, term.name).values())
            spread, difference = (min(values), max(values)), compared.get((term.name, policy))
            cells[policy] = MetricCell(mean, *spread, len(values), term.unit, difference)
        rows.append((term, cells))
    return rows


def _pair(setting: Setting, policy: str, baseline: str, metric: str) -> Pair:
    """The values on the replicates that both policies have."""
    ours, theirs = (setting.values(one, metric) for one in (policy, baseline))
    shared = [key for key in sorted(ours) if key in theirs]
    return Pair([theirs[key] for key in shared], [ours[key] for key in shared], shared)


def _means(setting: Setting, metric: str) -> dict[str, float]:
    """Policy -> mean over all its replicates; geometric if all values are positive."""
    every = {policy: setting.values(policy, metric) for policy in setting.runs}
    each = {policy: list(values.values()) for policy, values in every.items()}
    if len({tuple(values) for values in every.values()}) == 1:
        return replicate_means(each, clusters_of(list(setting.values(next(iter(every)), metric))))
    return replicate_means(each)


def family(*tables: Table) -> int:
    """How many comparisons of some tables are judged together."""
    cells = [cell for table in tables for _, row in table for cell in row.values()]
    return judged_together(cell.difference for cell in cells if cell.difference is not None)


def relative(difference: float) -> str:
    """A relative difference in words: percent, or how many times as much."""
    return f"{100 * difference:+.1f} %" if difference < _TENFOLD - 1 else f"x {1 + difference:,.0f}"
