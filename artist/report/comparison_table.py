"""The numbers of the comparison table: every metric of every policy against a baseline policy.

For each replicate (a seed and a permutation) that both policies have, the relative difference is

    (metric of the policy - metric of the baseline) / metric of the baseline

The table shows the mean of these differences with a bootstrap interval. `tables.py` turns the
numbers into HTML.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from artist.report.grouping import Setting
from artist.report.page_text import plain
from artist.results.bootstrap import Difference, bootstrap
from artist.results.glossary import METRICS, Term

MAIN = (
    "makespan_s", "jct_mean_s", "jct_p50_s", "jct_p95_s", "jct_p99_s", "queue_delay_mean_s",
    "queue_delay_p95_s", "queue_delay_p99_s", "comm_time_mean_s", "gpu_utilization", "preemptions",
    "migrations",
)  # fmt: skip
"""The metrics that the page shows at once. It shows the others after a click."""

# These metrics describe the simulation, not the cluster. `wall_s` even differs between equal
# runs, and equal runs must give the same page.
_LEFT_OUT = frozenset({"latency_queries", "latency_backend_calls", "events", "wall_s"})

# From ten times on, "x 209" is easier to read than "+20800.0%".
_TENFOLD = 10


@dataclass(frozen=True, slots=True)
class Cell:
    """One metric of one policy.

    `mean`, `low`, `high` and `count` describe all replicates of the policy. `difference` uses
    only the replicates that the baseline has too.
    """

    mean: float
    low: float
    high: float
    count: int
    difference: Difference | None

    @property
    def spread(self) -> str:
        """The range over the replicates as text; empty if all are equal."""
        return f"[{plain(self.low)} .. {plain(self.high)}]" if self.low < self.high else ""

    @property
    def against(self) -> str:
        """The relative difference as text, with its interval if the replicates differ."""
        difference = self.difference
        if difference is None or np.isnan(difference.mean):
            return ""
        mean = relative(difference.mean)
        interval = f" [{relative(difference.low)} .. {relative(difference.high)}]"
        return mean + interval if difference.low < difference.high else mean

    @property
    def sure(self) -> bool:
        """Whether zero lies outside the interval of the difference."""
        difference = self.difference
        if difference is None or not difference.low < difference.high:
            return False
        return not difference.low <= 0 <= difference.high


def compare_setting(setting: Setting, baseline: str) -> Iterator[tuple[Term, dict[str, Cell]]]:
    """One row per metric that all runs of a setting have: the metric, and a cell per policy."""
    runs = [run for replicates in setting.runs.values() for run in replicates.values()]
    for term in METRICS:
        if term.name in _LEFT_OUT or any(term.name not in run.summary for run in runs):
            continue
        yield term, {policy: _cell(setting, policy, baseline, term.name) for policy in setting.runs}


def replicate_count(setting: Setting) -> int:
    """The number of replicates that all policies of a setting have."""
    return len(set.intersection(*(set(replicates) for replicates in setting.runs.values())))


def _cell(setting: Setting, policy: str, baseline: str, metric: str) -> Cell:
    ours = {key: run.metric(metric) for key, run in setting.runs[policy].items()}
    theirs = {key: run.metric(metric) for key, run in setting.runs.get(baseline, {}).items()}
    pairs = [(ours[key], theirs[key]) for key in sorted(ours) if key in theirs]
    difference = None if policy == baseline or not pairs else _difference(pairs, metric)
    values = list(ours.values())
    return Cell(float(np.mean(values)), min(values), max(values), len(values), difference)


def _difference(pairs: Sequence[tuple[float, float]], metric: str) -> Difference:
    """The relative difference of pairs (policy, baseline).

    It is NaN if a baseline value is zero and the policy's value is not.
    """
    ours, theirs = np.array(pairs).T
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.where(ours == theirs, 0.0, (ours - theirs) / theirs)
    if not np.isfinite(relative).all():
        return Difference(metric, float("nan"), float("nan"), float("nan"))
    low, high = bootstrap(relative, metric)
    return Difference(metric, float(relative.mean()), low, high)


def relative(difference: float) -> str:
    """A relative difference in words: percent, or how many times as much."""
    return f"{difference:+.1%}" if difference < _TENFOLD - 1 else f"x {1 + difference:,.0f}"
