"""Tables and statistics of a run with failures or checkpoints.

    run time = productive + restarts and holds (stalled) + writing checkpoints + lost work

Productive is the time of iterations that were kept, without the checkpoints between them. The
effective training time ratio is productive over run time: time in the queue does not count.

What slow units cost is the computing that took longer on them than at full speed:

    longer = time computing x (1 - speed of the slowest unit)

Longer computing may hide more communication. That is not subtracted, so a job loses at most this
time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from artist.cluster.placement import Placement
from artist.contract import CheckpointRule, Outage
from artist.engine.rows import FAILED, HELD, RE_RATED, Rows
from artist.failures.failing_units import SlowLeaves
from artist.results.gpu_time import lost_ticks
from artist.results.metrics import Additions
from artist.results.tables import seconds_column
from artist.results.terms.columns import Table, typed
from artist.units import TICKS_PER_S, Tick

NOTICE = "notice"

Hazard = Callable[[Placement], float]
"""Failures per second that hit a job on some GPUs."""

Slowest = Callable[[Placement, Tick], "SlowLeaves | None"]
"""The slowest unit that some GPUs are in at a tick; None if all are at full speed."""

Numbers = npt.NDArray[np.float64]


class JobCosts(NamedTuple):
    """What failures and checkpoints cost the jobs. One value per job, in the order of arrival."""

    gpus: npt.NDArray[np.int64]
    run_s: Numbers
    productive_s: Numbers
    checkpoint_s: Numbers
    failures: npt.NDArray[np.int64]
    lost_gpu_s: Numbers
    """GPU time of work lost in failures."""
    expected: Numbers
    """Expected failures of the GPUs that the job held, while it held them."""

    @property
    def ratio(self) -> Numbers:
        """The effective training time ratio."""
        return self.productive_s / self.run_s


class _OutageRow(NamedTuple):
    """A row of the table of outages."""

    tick: Tick
    until: Tick
    outage: Outage
    event: str
    gpus: int
    handles: tuple[int, ...]


def failure_additions(rows: Rows, hazard: Hazard, job_ids: Sequence[str]) -> Additions:
    """The tables and figures about failures and checkpoints, from the rows of a run."""
    costs = job_costs(rows, hazard)
    tables = {"outages": outage_table(rows, job_ids), "failure_sizes": size_table(costs)}
    return Additions(
        failure_summary(rows, costs), job_columns(costs), placement_columns(rows), tables
    )


def job_costs(rows: Rows, hazard: Hazard) -> JobCosts:
    """The costs of each job, added up over its rows."""
    jobs = sorted(rows.jobs, key=lambda row: row.handle)
    at = {row.handle: index for index, row in enumerate(jobs)}
    productive, saving, lost_gpus, expected = (np.zeros(len(jobs)) for _ in range(4))
    for row, lost in zip(rows.placements, lost_ticks(rows), strict=True):
        index = at[row.handle]
        kept = row.end - row.start - row.stalled - lost
        productive[index] += kept * (row.iteration_s / row.pace_s)
        saving[index] += row.saving
        expected[index] += (row.end - row.start) / TICKS_PER_S * hazard(row.placement)
    for (_, handle), gpu_ticks in _lost_gpu_ticks(rows).items():
        lost_gpus[at[handle]] += gpu_ticks
    return JobCosts(
        np.array([row.job.gpus for row in jobs], dtype=np.int64),
        seconds_column([row.run for row in jobs]),
        productive / TICKS_PER_S,
        saving / TICKS_PER_S,
        np.array([row.failures for row in jobs], dtype=np.int64),
        lost_gpus / TICKS_PER_S,
        expected,
    )


def job_columns(costs: JobCosts) -> Table:
    """The columns that failures add to the table of jobs."""
    return {
        "failures": costs.failures.astype(np.int32),
        "checkpoint_s": costs.checkpoint_s,
        "training_time_ratio": costs.ratio,
    }


def placement_columns(rows: Rows) -> Table:
    """The columns that failures add to the table of placements."""
    return {"checkpoint_s": seconds_column([row.saving for row in rows.placements])}


def chosen_intervals(rows: Rows, rule: CheckpointRule) -> Mapping[str, float]:
    """The shortest and the longest checkpoint interval, of jobs that do not state theirs.

    `rule` chooses the interval of each stay. Empty if none of these jobs writes checkpoints.
    """
    jobs = {row.handle: row.job for row in rows.jobs if row.job.checkpoint_interval_s is None}
    stays = {
        (jobs[row.handle].checkpoint_cost_s, row.placement): jobs[row.handle]
        for row in rows.placements
        if row.handle in jobs
    }
    chosen = [rule(job, placement).interval for (_, placement), job in stays.items()]
    seconds = [interval / TICKS_PER_S for interval in chosen if interval is not None]
    if not seconds:
        return {}
    names = ("checkpoint_interval_min_s", "checkpoint_interval_max_s")
    return dict(zip(names, (min(seconds), max(seconds)), strict=True))


def outage_table(rows: Rows, job_ids: Sequence[str]) -> Table:
    """One row per outage and notice, in the order of time, with the jobs that it stopped.

    A notice stops no job: its row has the jobs on the GPUs, and how long they may stay.
    """
    lost = _lost_gpu_ticks(rows)
    events = _outage_rows(rows)
    columns: Table = {
        "time_s": seconds_column([row.tick for row in events]),
        "until_s": seconds_column([row.until for row in events]),
        "kind": [row.outage.kind for row in events],
        "unit": [row.outage.unit for row in events],
        "event": [row.event for row in events],
        "gpus": [row.gpus for row in events],
        "jobs": [len(row.handles) for row in events],
        "job_ids": [[job_ids[handle] for handle in row.handles] for row in events],
        "lost_gpu_s": [
            0.0
            if row.event == NOTICE
            else sum(lost.get((row.tick, x), 0) / TICKS_PER_S for x in row.handles)
            for row in events
        ],
    }
    return typed("outages", columns)


def _outage_rows(rows: Rows) -> list[_OutageRow]:
    """Outages and notices in the order of time; outages first at the same time."""
    found = [
        _OutageRow(
            row.tick,
            row.outage.until,
            row.outage,
            "failed" if row.outage.failed else "maintenance",
            row.placement.gpus,
            row.stopped,
        )
        for row in rows.outages
        if row.outage is not None
    ]
    found += [
        _OutageRow(row.tick, row.until, row.outage, NOTICE, row.gpus, row.there)
        for row in rows.notices
    ]
    return sorted(found, key=lambda row: row.tick)


def size_table(costs: JobCosts) -> Table:
    """One row per job size: how often jobs of this size failed, and their training time ratio.

    The mean time to failure is empty if nothing failed, the expected one if nothing fails at
    random.
    """
    sizes, part = np.unique(costs.gpus, return_inverse=True)

    def summed(values: npt.NDArray[Any]) -> Numbers:
        return np.bincount(part, weights=values, minlength=len(sizes)).astype(np.float64)

    run_s, failures, expected = map(summed, (costs.run_s, costs.failures, costs.expected))
    columns: Table = {
        "gpus": sizes,
        "jobs": np.bincount(part, minlength=len(sizes)),
        "run_s": run_s,
        "failures": failures,
        "failures_expected": expected,
        "mttf_s": _over(run_s, failures),
        "mttf_expected_s": _over(run_s, expected),
        "training_time_ratio": summed(costs.productive_s) / run_s,
        "lost_gpu_s": summed(costs.lost_gpu_s),
    }
    return typed("failure_sizes", columns)


def failure_summary(rows: Rows, costs: JobCosts) -> Mapping[str, Any]:
    """The statistics that failures add to the summary; means are those of finished jobs."""
    finished = [not row.cancelled for row in sorted(rows.jobs, key=lambda row: row.handle)]
    saving = sum(row.share(row.saving * row.placement.gpus) for row in rows.placements)
    return {
        "outages": sum(row.outage is not None for row in rows.outages),
        "failures": int(costs.failures.sum()),
        "lost_gpu_s": float(costs.lost_gpu_s.sum()),
        "checkpoint_gpu_s": saving / TICKS_PER_S,
        "withdrawn_gpu_s": _withdrawn_gpu_ticks(rows) / TICKS_PER_S,
        "training_time_ratio_mean": float(np.mean(costs.ratio[finished])),
    }


def _lost_gpu_ticks(rows: Rows) -> Mapping[tuple[Tick, int], int]:
    """GPU time of work lost in failures, by the tick of the failure and the job.

    Each interval counts by its own number of sharers, since jobs may share GPUs for a part of a
    stay only.
    """
    of_stay, lost_in = defaultdict[int, int](int), dict[tuple[Tick, int], int]()
    for row, lost in zip(rows.placements, lost_ticks(rows), strict=True):
        of_stay[row.handle] += row.share(lost * row.placement.gpus)
        if row.reason in (RE_RATED, HELD):
            continue
        gpu_ticks = of_stay.pop(row.handle)
        if row.reason is FAILED:
            lost_in[row.end, row.handle] = gpu_ticks
    return lost_in


def _withdrawn_gpu_ticks(rows: Rows) -> int:
    """GPU time out of service until the last job finished."""
    end = max(row.finish for row in rows.jobs)
    until = [*(row.tick for row in rows.withdrawn[1:]), end]
    return sum(
        row.gpus * max(0, min(after, end) - row.tick)
        for row, after in zip(rows.withdrawn, until, strict=False)
    )


def _over(seconds: Numbers, counts: Numbers) -> list[float | None]:
    return [
        time_s / count if count else None
        for time_s, count in zip(seconds.tolist(), counts.tolist(), strict=True)
    ]


def slow_additions(rows: Rows, slowest: Slowest) -> Additions:
    """What slow units add to summary, jobs and placements.

    An interval has one speed throughout, so the speed at its start is enough.
    """
    compute_s = {row.handle: row.job.compute_s for row in rows.jobs}
    longer_s = dict.fromkeys(sorted(compute_s), 0.0)
    gpu_s = 0.0
    units = []
    for row in rows.placements:
        slow = slowest(row.placement, row.start)
        if slow is None:
            units.append("")
            continue
        units.append(f"{slow.name} at {1 / slow.slowdown:.3g} of its speed")
        running_s = (row.end - row.start - row.stalled - row.saving) / TICKS_PER_S
        computing_s = running_s * compute_s[row.handle] * row.compute_scale / row.iteration_s
        longer_s[row.handle] += computing_s * (1 - 1 / slow.slowdown)
        gpu_s += computing_s * (1 - 1 / slow.slowdown) * row.placement.gpus / row.sharers
    return Additions(
        {"slowed_gpu_s": gpu_s}, {"slowed_s": np.array([*longer_s.values()])}, {"slow_unit": units}
    )
