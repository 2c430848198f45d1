"""The comparison table: every policy in every metric, against the first one, in pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from artist.experiments.compare import Difference, bootstrap
from artist.report.grouping import Setting
from artist.report.wording import plain
from artist.results.glossary import METRICS, Term

MAIN = (
    "makespan_s", "jct_mean_s", "jct_p50_s", "jct_p95_s", "jct_p99_s", "queue_delay_mean_s",
    "queue_delay_p95_s", "queue_delay_p99_s", "comm_time_mean_s", "gpu_utilization", "preemptions",
    "migrations",
)  # fmt: skip
"""What people compare first."""

# About the simulation, not about the cluster; the wall clock differs between equal runs.
_LEFT_OUT = frozenset({"latency_queries", "latency_backend_calls", "events", "wall_s"})


# From here on "x 209" says more than "+20800.0%".
_TENFOLD = 10


@dataclass(frozen=True, slots=True)
class Cell:
    """A policy in one metric: over its replicates, and against the baseline on shared ones."""

    mean: float
    low: float
    high: float
    count: int
    difference: Difference | None

    @property
    def spread(self) -> str:
        """The range over replicates, if they differ."""
        return f"[{plain(self.low)} .. {plain(self.high)}]" if self.low < self.high else ""

    @property
    def against(self) -> str:
        """The relative difference, with its interval if replicates differ."""
        found = self.difference
        if found is None or np.isnan(found.mean):
            return ""
        mean = relative(found.mean)
        within = f" [{relative(found.low)} .. {relative(found.high)}]"
        return mean + within if found.low < found.high else mean

    @property
    def sure(self) -> bool:
        """Is the difference larger than what replicates differ by?"""
        found = self.difference
        return found is not None and found.low < found.high and not found.low <= 0 <= found.high


def compare_setting(setting: Setting, baseline: str) -> Iterator[tuple[Term, dict[str, Cell]]]:
    """A row per metric that all runs of a setting have."""
    runs = [run for found in setting.runs.values() for run in found.values()]
    for term in METRICS:
        if term.name in _LEFT_OUT or any(term.name not in run.summary for run in runs):
            continue
        yield term, {policy: _cell(setting, policy, baseline, term.name) for policy in setting.runs}


def replicate_count(setting: Setting) -> int:
    """Replicates that all policies of a setting share."""
    return len(set.intersection(*(set(found) for found in setting.runs.values())))


def _cell(setting: Setting, policy: str, baseline: str, metric: str) -> Cell:
    ours = {key: run.metric(metric) for key, run in setting.runs[policy].items()}
    theirs = {key: run.metric(metric) for key, run in setting.runs.get(baseline, {}).items()}
    pairs = [(ours[key], theirs[key]) for key in sorted(ours) if key in theirs]
    difference = None if policy == baseline or not pairs else _difference(pairs, metric)
    values = list(ours.values())
    return Cell(float(np.mean(values)), min(values), max(values), len(values), difference)


def _difference(pairs: Sequence[tuple[float, float]], metric: str) -> Difference:
    """Relative to the baseline; NaN where that is zero and we are not."""
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
