"""The window of a run that a scenario measures, and the statistics of the window."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from artist.cluster.tree import ClusterTree
from artist.config import Scenario
from artist.engine.rows import Rows
from artist.errors import ConfigError
from artist.results.metrics import summarise
from artist.results.statistics.measured_window import (
    MeasuredWindow,
    measured_jobs,
    measured_rows,
    measured_shared_share,
    measured_shares,
    measured_timeline,
)
from artist.results.terms.columns import Table
from artist.trace.native.trace import Trace
from artist.units import LAST_TICK, TICKS_PER_S, ticks


def measured_window(scenario: Scenario) -> MeasuredWindow | None:
    """The part of the run that is measured; None if it is the whole run."""
    start_s, end_s = scenario.measure_from_s, scenario.measure_until_s
    if start_s is None and end_s is None:
        return None
    return MeasuredWindow(ticks(start_s or 0.0), LAST_TICK if end_s is None else ticks(end_s))


def check_measured(scenario: Scenario, trace: Trace) -> None:
    """Refuse a window in which no job arrives.

    Raises:
        ConfigError: names the window, and when jobs arrive.
    """
    window = measured_window(scenario)
    if window is None or any(window.has(ticks(job.arrival_s)) for job in trace.jobs):
        return
    given = " and ".join(
        f"{name}={value:g}"
        for name in ("measure_from_s", "measure_until_s")
        if (value := getattr(scenario, name)) is not None
    )
    arrivals_s = [job.arrival_s for job in trace.jobs]
    raise ConfigError(
        f"{given}: no job arrives then, but from {min(arrivals_s):g} to {max(arrivals_s):g} s; "
        "choose a window among these"
    )


def summarise_measured(
    rows: Rows,
    tree: ClusterTree,
    jobs: Table,
    timeline: Table,
    summary: Mapping[str, Any],
    window: MeasuredWindow,
) -> dict[str, Any]:
    """The summary of a run with the statistics of a window, in place of those of the whole run.

    `summary` is that of the whole run. Its makespan, bound, counts of jobs and events are kept.
    """
    first, last = min(row.arrival for row in rows.jobs), max(row.finish for row in rows.jobs)
    window = window.within(first, last)
    measured = measured_jobs(rows, jobs, window)
    seen = measured_timeline(timeline, window)
    within = summarise(measured_rows(rows, window), tree, measured, seen, 0)
    whole = ("jobs_total", "jobs_finished", "jobs_cancelled", "makespan_s", "makespan_bound_s")
    return {
        **within,
        **measured_shares(seen, tree.gpus),
        **measured_shared_share(rows, tree.gpus, window),
        **{name: summary[name] for name in (*whole, "events") if name in summary},
        "jobs_measured": len(measured["arrival_s"]),
        "measured_from_s": window.start / TICKS_PER_S,
        "measured_until_s": window.end / TICKS_PER_S,
    }
