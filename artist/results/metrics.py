"""The statistics of a run, from its rows and tables, computed after the simulation.

The formulas are in `terms/metrics.tsv`. Times are seconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from artist.cluster.tree import ClusterTree
from artist.engine.rows import EndReason, PlacementRow, Rows
from artist.errors import PolicyError
from artist.results.gpu_time import first_start_ticks, gpu_time, lost_ticks
from artist.results.lower_bound import makespan_bound
from artist.results.statistics.sorted_values import percentile, weighted_percentile
from artist.results.tables import finished_jobs
from artist.results.terms.columns import Column, Table
from artist.units import GPU_MILLI, TICKS_PER_S
from artist.workload.job import Job

SECONDS_PER_HOUR = 3600.0


class Additions(NamedTuple):
    """What failures, tenants and the like add to a result, where a run has them."""

    summary: Mapping[str, Any] = MappingProxyType({})
    job_columns: Mapping[str, Column] = MappingProxyType({})
    placement_columns: Mapping[str, Column] = MappingProxyType({})
    tables: Mapping[str, Table] = MappingProxyType({})


_ROUNDING = 1e-12
"""A smaller share of an iteration is a rounding error, not communication."""

# After these ends the same job goes on with the same GPUs: the placement does not end.
_CONTINUES = frozenset({EndReason.RE_RATED, EndReason.HELD})


def summarise(
    rows: Rows,
    tree: ClusterTree,
    jobs: Table,
    timeline: Table,
    jobs_total: int,
    constant_share: Callable[[str], float] = lambda _model: 0.0,
    least_scale: Callable[[Job], float] = lambda _job: 1.0,
    gains: tuple[float, float] = (1.0, 1.0),
) -> dict[str, Any]:
    """The statistics of a run, over finished jobs. `terms/metrics.tsv` explains the keys.

    `constant_share`, `least_scale` and `gains` are those of `lower_bound.makespan_bound`.
    """
    ended_s, first_s = float(np.max(jobs["finish_s"])), float(np.min(jobs["arrival_s"]))
    available = tree.gpus * (ended_s - first_s)
    whole, jobs = jobs, finished_jobs(jobs)
    cancelled = len(whole["arrival_s"]) - len(jobs["arrival_s"])
    if not len(jobs["arrival_s"]):
        raise PolicyError(
            f"every job was cancelled ({cancelled:,}), so no job has a completion time; let the "
            "policy finish some"
        )
    makespan = float(np.max(jobs["finish_s"])) - first_s
    spread = _spread("jct", jobs["jct_s"], (50, 95, 99))
    delays = _spread("queue_delay", jobs["queue_delay_s"], (95, 99))
    return {
        "cluster": tree.text,
        "gpus": tree.gpus,
        "jobs_total": jobs_total,
        "jobs_finished": sum(not row.cancelled for row in rows.jobs),
        **({"jobs_cancelled": cancelled} if cancelled else {}),
        "makespan_s": makespan,
        "makespan_bound_s": _bound_s(rows, tree, constant_share, least_scale, gains),
        **spread,
        **delays,
        "comm_time_share": _comm_time_share(jobs),
        "comm_time_mean_s": float(np.mean(jobs["comm_s"])),
        "compute_time_mean_s": float(np.mean(jobs["compute_s"])),
        **_kept(rows),
        **_shares(rows, available),
        "fragmentation": _fragmentation(timeline, tree),
        "preemptions": int(np.sum(whole["preemptions"])),
        "migrations": int(np.sum(whole["migrations"])),
        "preemption_cost_gpu_s": _preemption_cost_gpu_s(rows),
        **_placements_per_level(rows, tree),
        **_iteration_times(rows.placements),
        **_fairness(jobs),
        **_contention(jobs),
        "events": rows.events,
    }


def _bound_s(
    rows: Rows,
    tree: ClusterTree,
    constant_share: Callable[[str], float],
    least_scale: Callable[[Job], float],
    gains: tuple[float, float],
) -> float:
    """The bound in seconds from the first arrival, rounded as the makespan, so never above it.

    Cancelled jobs do not count: the rest of their work is never done.
    """
    finished = [row for row in rows.jobs if not row.cancelled]
    if not finished:
        return 0.0
    first, end = makespan_bound(finished, tree.gpus, constant_share, least_scale, gains)
    return end / TICKS_PER_S - first / TICKS_PER_S


def _kept(rows: Rows) -> Mapping[str, float]:
    """The parts of the mean JCT, except for waiting.

    All time of lost work is a cost of preemption, also if it went into communication or
    checkpoints.
    """
    compute_s = {row.handle: row.job.compute_s for row in rows.jobs if not row.cancelled}
    comm_s = computing_s = 0.0
    wasted = saved = started = 0
    split = zip(rows.placements, lost_ticks(rows), first_start_ticks(rows), strict=True)
    for row, lost, starting in split:
        if row.handle not in compute_s:
            continue
        kept = row.end - row.start - row.stalled - lost
        # The part of the kept time in which the job wrote checkpoints.
        saving = row.checkpoint_s / row.pace_s
        kept_s = kept / TICKS_PER_S
        share = min(compute_s[row.handle] * row.compute_scale / row.pace_s, 1.0)
        exposed = 1.0 - share - saving
        comm_s += kept_s * exposed if exposed > _ROUNDING else 0.0
        computing_s += kept_s * share
        wasted += row.stalled - starting + lost
        started += starting
        saved += round(kept * saving)
    count = len(compute_s)
    return {
        "comm_kept_mean_s": comm_s / count,
        "compute_kept_mean_s": computing_s / count,
        "preemption_time_mean_s": wasted / TICKS_PER_S / count,
        **({"first_start_time_mean_s": started / TICKS_PER_S / count} if started else {}),
        **({"checkpoint_time_mean_s": saved / TICKS_PER_S / count} if saved else {}),
    }


def _comm_time_share(jobs: Table) -> float:
    """Share of the jobs' running time, with lost work, that is exposed communication."""
    comm_s, compute_s = float(np.sum(jobs["comm_s"])), float(np.sum(jobs["compute_s"]))
    return comm_s / (comm_s + compute_s)


def _shares(rows: Rows, available_gpu_s: float) -> Mapping[str, float]:
    """The shares of the cluster's GPU time by use. The first is the sum of the next four."""
    held_milli = sum(row.held_milli * (row.end - row.start) for row in rows.placements)
    held_s = held_milli / (GPU_MILLI * TICKS_PER_S)
    shares = {"gpu_allocated_share": held_s / available_gpu_s}
    for part, gpu_s in gpu_time(rows)._asdict().items():
        shares[f"gpu_{part}_share"] = gpu_s / available_gpu_s
    together = [row for row in rows.placements if row.beside and row.first]
    if together:
        shared = sum(row.placement.gpus * (row.end - row.start) for row in together)
        shares["gpu_shared_share"] = shared / TICKS_PER_S / available_gpu_s
    return shares


def _preemption_cost_gpu_s(rows: Rows) -> float:
    """GPU-seconds lost or stalled because of preemptions and migrations."""
    wasted = sum(
        row.share(row.placement.gpus * (row.stalled - starting + lost))
        for row, starting, lost in zip(
            rows.placements, first_start_ticks(rows), lost_ticks(rows), strict=True
        )
    )
    return wasted / TICKS_PER_S


def _fragmentation(timeline: Table, tree: ClusterTree) -> float:
    """Share of the free GPUs that the job mix cannot use, while jobs wait."""
    length_s = np.diff(np.asarray(timeline["time_s"]))
    held = np.asarray(timeline["gpus_held"])
    waiting_s = np.where(np.asarray(timeline["jobs_waiting"])[:-1] > 0, length_s, 0.0)
    # The last digit of a dot product depends on the number of threads. `fsum` is exact.
    in_service = tree.gpus - np.asarray(timeline.get("gpus_withdrawn", 0.0)) + np.zeros(len(held))
    free = math.fsum(waiting_s * (in_service - held)[:-1])
    fragmented = math.fsum(waiting_s * np.asarray(timeline["gpus_fragmented"])[:-1])
    return fragmented / free if free else 0.0


def _iteration_times(placements: Sequence[PlacementRow]) -> Mapping[str, float]:
    """Statistics over all iterations of all jobs: each row weighs as many iterations as it has."""
    weight = np.array([row.iterations for row in placements], dtype=np.float64)
    time_s = np.array([row.iteration_s for row in placements])
    alone_s = np.array([row.alone_iteration_s for row in placements])
    statistics = {"iteration_time_mean_s": float(np.average(time_s, weights=weight))}
    for percent in (50, 90, 99):
        value = weighted_percentile(time_s, weight, percent)
        statistics[f"iteration_time_p{percent}_s"] = value
    statistics["iteration_slowdown_mean"] = float(np.average(time_s / alone_s, weights=weight))
    return statistics


def _fairness(jobs: Table) -> Mapping[str, float]:
    """Finish-time fairness without and with communication, and how equal it is (Jain's index)."""
    rho = np.asarray(jobs["finish_time_fairness"])
    statistics = {}
    for name in ("finish_time_fairness", "finish_time_fairness_alone"):
        if name in jobs:
            statistics[f"{name}_mean"] = float(np.mean(jobs[name]))
            statistics[f"{name}_max"] = float(np.max(jobs[name]))
    jain = float(rho.sum() ** 2 / (len(rho) * np.square(rho).sum()))
    return {**statistics, "jain_index": jain}


def _contention(jobs: Table) -> Mapping[str, float]:
    """What jobs lost on links; nothing if they could not."""
    if "contention_slowdown" not in jobs:
        return {}
    slowdown = np.asarray(jobs["contention_slowdown"])
    return {
        "contention_slowdown_mean": float(np.mean(slowdown)),
        "contention_slowdown_p95": percentile(slowdown, 95),
        **{
            f"contention_{part}_job_h": float(np.sum(jobs[column])) / SECONDS_PER_HOUR
            for part in ("lost", "own")
            if (column := f"contention_{part}_s") in jobs
        },
    }


def _spread(name: str, values: Column, percentiles: Sequence[int]) -> Mapping[str, float]:
    statistics = {f"{name}_mean_s": float(np.mean(values))}
    for percent in percentiles:
        statistics[f"{name}_p{percent}_s"] = percentile(values, percent)
    return statistics


def _placements_per_level(rows: Rows, tree: ClusterTree) -> Mapping[str, int]:
    counts = dict.fromkeys(tree.level_names[tree.machine :], 0)
    for row in rows.placements:
        if row.reason not in _CONTINUES:
            counts[tree.levels[row.tier].name] += 1
    return {f"placements_{name}": count for name, count in counts.items()}
