"""What tenants used against what they are entitled to, and how long jobs of each priority waited.

Only runs whose jobs have tenants or priorities have these columns, tables and metrics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from artist.engine.rows import PlacementRow, Rows
from artist.results.metrics import SECONDS_PER_HOUR, Additions
from artist.results.statistics.measured_window import MeasuredWindow
from artist.results.statistics.sorted_values import percentile
from artist.results.terms.columns import Table, typed
from artist.units import TICKS_PER_S
from artist.workload.job import Job
from artist.workload.tenants import Tenant

INTERVALS = 96
"""Rows of `tenant_use` per tenant: in a run of a day, each is a quarter of an hour."""

URGENT = 3
"""Priorities up to this one have a service level (docs/mast.md)."""


def whose_waits(queue: Mapping[str, list[Any]], trace: Sequence[Job]) -> dict[str, list[Any]]:
    """The table `queue` of a policy with quotas, with the name and the tenant of each job."""
    of_jobs = [trace[handle] for handle in queue["job"]]
    named = {"job_id": [job.id for job in of_jobs], "tenant": [job.tenant or "" for job in of_jobs]}
    first = {name: queue[name] for name in ("time_s", "job")}
    return {**first, **named, **{name: queue[name] for name in queue if name not in first}}


def tenant_additions(
    rows: Rows,
    trace: Sequence[Job],
    jobs: Table,
    gpus: int,
    tenants: Mapping[str, Tenant],
    queue: Mapping[str, Sequence[Any]],
    window: MeasuredWindow | None,
) -> Additions:
    """What tenants and priorities add to a run on `gpus` GPUs.

    `queue` is the policy's table of that name; empty if it has none. The waits of urgent jobs are
    those of jobs that arrive in `window`; all other figures are of the whole run.
    """
    if not tenants and all(job.tenant is None and job.priority is None for job in trace):
        return Additions()
    ordered = sorted(rows.jobs, key=lambda row: row.handle)
    of_jobs = [trace[row.handle] for row in ordered]
    columns: Table = {}
    tables: dict[str, Table] = {}
    metrics: dict[str, float] = {}
    if tenants or any(job.tenant is not None for job in of_jobs):
        tenant = [job.tenant or "" for job in of_jobs]
        columns["tenant"] = tenant
        names = list(tenants) or sorted({job.tenant for job in of_jobs if job.tenant is not None})
        entitled = _entitled(names, tenants, gpus)
        tables["tenants"] = _tenants(tenant, jobs, rows, trace, names, entitled, gpus)
        tables["tenant_use"] = _use_over_time(rows, trace, names, entitled)
        metrics |= _metrics_of_tenants(tables["tenants"])
    if any(job.priority is not None for job in of_jobs):
        priority = np.array([job.priority or 0 for job in of_jobs], np.int32)
        columns["priority"] = priority
        tables["priorities"] = _priorities(priority, jobs)
        urgent = (priority > 0) & (priority <= URGENT) & _finished(jobs)
        if window is not None:
            urgent &= [window.has(row.arrival) for row in ordered]
        if urgent.any():
            delays = np.asarray(jobs["queue_delay_s"])[urgent]
            metrics["queue_delay_urgent_mean_s"] = float(np.mean(delays))
            metrics["queue_delay_urgent_p95_s"] = percentile(delays, 95)
    pairs = zip(queue.get("late", ()), queue.get("priority", ()), strict=False)
    counted = [bool(late) for late, priority in pairs if priority <= URGENT]
    if counted:
        metrics["late_share"] = sum(counted) / len(counted)
    return Additions(metrics, columns, tables=tables)


def class_column(rows: Rows, classes: Mapping[str, Sequence[Any]]) -> Table:
    """The class with which the job of each interval got its GPUs; nothing without `classes`.

    `classes` is the table `starts_by_class` of a policy that knows quotas: tick, job and class of
    every start. A job that moves keeps its class.
    """
    if not classes:
        return {}
    starts = zip(classes["tick"], classes["job"], classes["class"], strict=True)
    at_start = {(tick, job): number for tick, job, number in starts}
    column = np.zeros(len(rows.placements), np.int32)
    of_job: dict[int, int] = {}
    for index in sorted(range(len(column)), key=lambda index: rows.placements[index].start):
        row = rows.placements[index]
        column[index] = of_job[row.handle] = at_start.get(
            (row.start, row.handle), of_job.get(row.handle, 0)
        )
    return {"class": column}


def _tenants(
    tenant: Sequence[Any],
    jobs: Table,
    rows: Rows,
    trace: Sequence[Job],
    names: Sequence[str],
    entitled: npt.NDArray[np.float64],
    gpus: int,
) -> Table:
    """A row per tenant, in the order of the scenario, else of the names."""
    of_job = np.array(tenant, dtype=object)
    used_gpu_s = dict.fromkeys(names, 0.0)
    for row in rows.placements:
        name = trace[row.handle].tenant
        if name is not None:
            held = row.share(row.placement.gpus * (row.end - row.start))
            used_gpu_s[name] += held / TICKS_PER_S
    makespan_s = float(np.max(jobs["finish_s"]) - np.min(jobs["arrival_s"]))
    own = [of_job == name for name in names]
    used = np.array([used_gpu_s[name] for name in names])
    columns: Table = {
        "tenant": list(names),
        "entitled_gpus": entitled,
        "jobs": [mask.sum() for mask in own],
        "used_gpu_h": used / SECONDS_PER_HOUR,
        "used_share": used / (gpus * makespan_s),
        "entitled_share": entitled / gpus,
        **_waits(jobs, own),
    }
    return typed("tenants", columns)


def _waits(jobs: Table, groups: Sequence[npt.NDArray[np.bool_]]) -> Table:
    """How long the jobs of each group waited, and how often they lost their GPUs."""
    delays, lost = np.asarray(jobs["queue_delay_s"]), np.asarray(jobs["preemptions"])
    done = _finished(jobs)
    return {
        "queue_delay_mean_s": [_mean(delays[group & done]) for group in groups],
        "queue_delay_p95_s": [_p95(delays[group & done]) for group in groups],
        "preemptions": [lost[group].sum() for group in groups],
    }


def _entitled(
    names: Sequence[str], tenants: Mapping[str, Tenant], gpus: int
) -> npt.NDArray[np.float64]:
    """GPUs that tenants are entitled to: their quotas, or equal parts where there are none."""
    if tenants:
        return np.array([tenants[name].quota for name in names], np.float64)
    return np.full(len(names), gpus / len(names))


def _use_over_time(
    rows: Rows, trace: Sequence[Job], names: Sequence[str], entitled: npt.NDArray[np.float64]
) -> Table:
    """Mean use of every tenant in equal intervals of the run."""
    first = min(row.arrival for row in rows.jobs)
    last = max(row.finish for row in rows.jobs)
    edges: npt.NDArray[np.float64] = np.linspace(first, last, INTERVALS + 1)
    by_tenant: dict[str, list[PlacementRow]] = {name: [] for name in names}
    for row in rows.placements:
        name = trace[row.handle].tenant
        if name is not None:
            by_tenant[name].append(row)
    held = np.array([_mean_held(by_tenant[name], edges) for name in names])
    return {
        "tenant": [name for name in names for _ in range(INTERVALS)],
        "start_s": np.tile(edges[:-1] / TICKS_PER_S, len(names)),
        "end_s": np.tile(edges[1:] / TICKS_PER_S, len(names)),
        "gpus_held_mean": held.ravel(),
        "entitled_gpus": np.repeat(entitled, INTERVALS),
    }


def _mean_held(
    placements: Sequence[PlacementRow], edges: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """GPUs held on average between edges, in ticks."""
    if not placements:
        return np.zeros(len(edges) - 1)
    gpus = np.array([row.placement.gpus / row.sharers for row in placements], np.float64)
    start = np.array([row.start for row in placements], np.float64)
    end = np.array([row.end for row in placements], np.float64)
    ticks = np.concatenate([start, end])
    change = np.concatenate([gpus, -gpus])
    order = np.argsort(ticks, kind="stable")
    ticks, held = ticks[order], np.cumsum(change[order])
    # GPU-ticks up to each change; in between they grow evenly.
    used = np.concatenate([[0.0], np.cumsum(held[:-1] * np.diff(ticks))])
    means: npt.NDArray[np.float64] = np.diff(np.interp(edges, ticks, used)) / np.diff(edges)
    return means


def _metrics_of_tenants(tenants: Table) -> Mapping[str, float]:
    """How evenly tenants are served: Jain's index of use over entitlement."""
    entitled = np.asarray(tenants["entitled_share"])
    served = np.asarray(tenants["used_share"])[entitled > 0] / entitled[entitled > 0]
    squares = float(np.square(served).sum())
    metrics: dict[str, float] = {"tenants": len(entitled)}
    if squares:
        metrics["tenants_jain_index"] = float(served.sum() ** 2 / (len(served) * squares))
    return metrics


def _priorities(priority: npt.NDArray[np.int32], jobs: Table) -> Table:
    """A row per priority, from the most urgent; jobs without one come last, as 0."""
    values = sorted({int(x) for x in priority}, key=lambda x: (x == 0, x))
    own = [priority == value for value in values]
    columns: Table = {
        "priority": values,
        "jobs": [mask.sum() for mask in own],
        **_waits(jobs, own),
    }
    return typed("priorities", columns)


def _finished(jobs: Table) -> npt.NDArray[np.bool_]:
    """Whether each job finished; means leave out the waits of cancelled jobs."""
    cancelled: npt.NDArray[np.bool_] = np.zeros(len(jobs["arrival_s"]), bool)
    if "cancelled" in jobs:
        cancelled = np.asarray(jobs["cancelled"]) > 0
    return ~cancelled


def _mean(values: npt.NDArray[np.float64]) -> float | None:
    return float(np.mean(values)) if len(values) else None


def _p95(values: npt.NDArray[np.float64]) -> float | None:
    return percentile(values, 95) if len(values) else None
