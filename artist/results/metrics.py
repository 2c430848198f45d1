"""From the engine's rows to tables and a summary.

The formulas are in `terms/tables.tsv` and `terms/metrics.tsv`. All numbers are computed
after the simulation, from its rows. Times are seconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from artist.cluster.kinds import kinds_of, several_kinds
from artist.cluster.placement import Placement, machine_counts
from artist.cluster.placement_shape import signature
from artist.cluster.tree import ClusterTree
from artist.engine.rows import EndReason, PlacementRow, Rows, Timeline
from artist.errors import PolicyError
from artist.results.fragmentation import fragmented_gpus
from artist.results.gpu_time import gpu_time, gpus_over_time, lost_ticks
from artist.results.lower_bound import makespan_bound
from artist.results.statistics.sorted_values import percentile, rising
from artist.results.terms.columns import Column, Table, typed
from artist.units import GPU_MILLI, TICKS_PER_S
from artist.workload.job import Job

SECONDS_PER_HOUR = 3600.0


class Additions(NamedTuple):
    """What failures, tenants and the like add to a result, where a run has them."""

    summary: Mapping[str, Any] = MappingProxyType({})
    job_columns: Mapping[str, Column] = MappingProxyType({})
    placement_columns: Mapping[str, Column] = MappingProxyType({})
    tables: Mapping[str, Table] = MappingProxyType({})


# After these ends the same job goes on with the same GPUs: the placement does not end.
_CONTINUES = frozenset({EndReason.RE_RATED, EndReason.HELD})


def seconds_column(ticks: Sequence[int] | npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Ticks to seconds."""
    return np.array(ticks, dtype=np.int64) / TICKS_PER_S


def job_table(
    rows: Rows, alone_s: Sequence[float] | None = None, *, contended: bool = False
) -> Table:
    """One row per job that finished or was cancelled, in the order of arrival.

    `alone_s` (`isolated_run_time.py`) has a value per handle. Without it, its columns are left out.
    The columns of what jobs lost to each other are there if jobs are `contended`.
    """
    jobs = sorted(rows.jobs, key=lambda row: row.handle)
    parts = _parts(rows.placements, {row.handle: row.job.compute_s for row in jobs})
    jct = seconds_column([row.finish - row.arrival for row in jobs])
    ideal = np.array([row.job.ideal_s for row in jobs])
    job_parts = [parts[row.handle] for row in jobs]
    columns: Table = {
        "job_id": [row.job.id for row in jobs],
        "user": [row.job.user for row in jobs],
        "model": [row.job.model for row in jobs],
        "gpus": [row.job.gpus for row in jobs],
        **_gpu_share([row.job.gpu_milli for row in jobs]),
        "gpus_min": [row.job.gpus_min for row in jobs],
        "gpus_max": [row.job.gpus_max for row in jobs],
        "iterations": [row.job.iterations - row.left for row in jobs],
        "arrival_s": seconds_column([row.arrival for row in jobs]),
        "start_s": seconds_column([row.start for row in jobs]),
        "finish_s": seconds_column([row.finish for row in jobs]),
        "jct_s": jct,
        "queue_delay_s": seconds_column([row.finish - row.arrival - row.run for row in jobs]),
        "run_s": seconds_column([row.run for row in jobs]),
        "ideal_s": ideal,
        "finish_time_fairness": jct / ideal,
        **_alone(jct, None if alone_s is None else [alone_s[row.handle] for row in jobs]),
        "compute_s": [part.compute_s for part in job_parts],
        "comm_s": [part.comm_s for part in job_parts],
        "stalled_s": seconds_column([part.stalled for part in job_parts]),
        "lost_s": seconds_column([part.lost for part in job_parts]),
        "preemptions": [row.preemptions for row in jobs],
        "migrations": [row.migrations for row in jobs],
        "source": ["|".join(sorted(part.sources)) for part in job_parts],
        **(_lost_to_others(job_parts) if contended else {}),
    }
    if any(row.cancelled for row in jobs):
        columns["cancelled"] = [int(row.cancelled) for row in jobs]
    table = typed("jobs", columns)
    for name in dict.fromkeys(name for row in jobs for name in row.job.hints):
        table[name] = [row.job.hints.get(name) for row in jobs]
    return table


def _gpu_share(milli: Sequence[int]) -> Table:
    """The column of the GPU that each job holds; none in a run in which all hold whole GPUs."""
    if min(milli, default=GPU_MILLI) == GPU_MILLI:
        return {}
    return {"gpu_share": [part / GPU_MILLI for part in milli]}


def finished_jobs(jobs: Table) -> Table:
    """The rows of the table of jobs without those that were cancelled."""
    if "cancelled" not in jobs:
        return jobs
    at = np.flatnonzero(np.asarray(jobs["cancelled"]) == 0).tolist()
    return {
        name: column[at] if isinstance(column, np.ndarray) else [column[index] for index in at]
        for name, column in jobs.items()
    }


def _alone(jct_s: npt.NDArray[np.float64], alone_s: Sequence[float] | None) -> Table:
    if alone_s is None:
        return {}
    seconds = np.array(alone_s)
    return {"alone_s": seconds, "finish_time_fairness_alone": jct_s / seconds}


def _lost_to_others(parts: Sequence[_Parts]) -> Table:
    """Running time with the others, and what the same iterations would have taken without."""
    running_s = np.array([part.compute_s + part.comm_s for part in parts])
    undisturbed_s = np.array([part.undisturbed_s for part in parts])
    # A job that was never slowed has lost nothing, to the last bit.
    disturbed = np.array([part.disturbed for part in parts], dtype=bool)
    lost_s = np.where(disturbed, running_s - undisturbed_s, 0.0)
    slowdown = np.divide(lost_s, undisturbed_s, out=np.zeros(len(parts)), where=undisturbed_s > 0)
    return {"contention_slowdown": slowdown, "contention_lost_s": lost_s}


def placement_table(
    rows: Rows,
    tree: ClusterTree,
    job_ids: Sequence[str],
    orders: Mapping[tuple[int, Placement], str],
) -> Table:
    """One row per interval, in the order in which the intervals ended.

    `orders` are orders of ranks, by handle and GPUs; a signature holds it, as `8,8@tensor-data`.
    """
    placements = rows.placements
    # Many intervals have the same GPUs.
    different = dict.fromkeys(row.placement for row in placements)
    texts = {placement: placement_text(tree, placement) for placement in different}
    kinds = {x: "+".join(kinds_of(tree, x)) for x in different} if several_kinds(tree) else {}
    signatures = {placement: signature(tree, placement) for placement in different}
    shapes = [signatures[row.placement] for row in placements]
    if orders:
        of_rows = ((row.handle, row.placement) for row in placements)
        shapes = [text + orders.get(key, "") for text, key in zip(shapes, of_rows, strict=True)]
    columns: Table = {
        "job_id": [job_ids[row.handle] for row in placements],
        "gpus": [row.placement.gpus for row in placements],
        **_gpu_share([row.gpu_milli for row in placements]),
        "level": [tree.levels[row.tier].name for row in placements],
        "signature": shapes,
        "placement": [texts[row.placement] for row in placements],
        **({"gpu_kind": [kinds[row.placement] for row in placements]} if kinds else {}),
        "start_s": seconds_column([row.start for row in placements]),
        "end_s": seconds_column([row.end for row in placements]),
        "iterations": [row.iterations for row in placements],
        "iteration_s": [row.iteration_s for row in placements],
        "alone_iteration_s": [row.alone_iteration_s for row in placements],
        "stalled_s": seconds_column([row.stalled for row in placements]),
        "lost_s": seconds_column([row.lost for row in placements]),
        "source": [row.source for row in placements],
        "ended": [row.ended for row in placements],
    }
    if any(row.beside for row in placements):
        columns["beside"] = [[job_ids[handle] for handle in row.beside] for row in placements]
    if any(row.batch for row in placements):
        columns["batch"] = [row.batch for row in placements]
    return typed("placements", columns)


def timeline_table(rows: Rows, tree: ClusterTree, *, failing: bool = False) -> Table:
    """The cluster's state, one row per change; if GPUs fail, also how many are out of service."""
    timeline = rows.timeline
    changes = np.array(timeline.tick, dtype=np.int64)
    fragment_ticks, fragmented = fragmented_gpus(rows, tree)
    use_ticks, use = gpus_over_time(rows)
    withdrawn_ticks, withdrawn = _out_of_service(rows)
    ticks = rising(changes, fragment_ticks, use_ticks, *([withdrawn_ticks] if failing else []))
    at = np.searchsorted(changes, ticks, side="right") - 1
    return {
        "time_s": ticks / TICKS_PER_S,
        "gpus_held": _gpus_held(timeline)[at],
        **{
            f"gpus_{part}": _held_at(ticks, use_ticks, values)
            for part, values in use._asdict().items()
        },
        **({"gpus_withdrawn": _held_at(ticks, withdrawn_ticks, withdrawn)} if failing else {}),
        "gpus_fragmented": _held_at(ticks, fragment_ticks, fragmented),
        "jobs_running": np.array(timeline.jobs_running, dtype=np.int32)[at],
        "jobs_waiting": np.array(timeline.jobs_waiting, dtype=np.int32)[at],
    }


def _gpus_held(timeline: Timeline) -> Column:
    parts = timeline.gpu_parts
    if parts == 1:
        return np.array(timeline.gpus_held, dtype=np.int32)
    return np.array(timeline.gpus_held, dtype=np.float64) / parts


def _out_of_service(rows: Rows) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Rising ticks, and the GPUs out of service from each tick to the next."""
    last = dict(rows.withdrawn)  # of several changes at one tick the last one counts
    return np.array(list(last), dtype=np.int64), np.array(list(last.values()), dtype=np.float64)


def _held_at(
    ticks: npt.NDArray[np.int64], own: npt.NDArray[np.int64], values: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """A step function that changes at its own ticks, at other ticks; 0 before its first."""
    steps: npt.NDArray[np.float64] = np.concatenate([[0.0], values])
    return steps[np.searchsorted(own, ticks, side="right")]


def placement_text(tree: ClusterTree, placement: Placement) -> str:
    """`machine:gpus` for each machine, ascending, e.g. `0:8 5:4`."""
    counts = machine_counts(tree, placement)
    return " ".join(f"{machine}:{gpus}" for machine, gpus in counts.items())


def summarise(
    rows: Rows,
    tree: ClusterTree,
    jobs: Table,
    timeline: Table,
    jobs_total: int,
    constant_share: Callable[[str], float] = lambda _model: 0.0,
    least_scale: Callable[[Job], float] = lambda _job: 1.0,
) -> dict[str, Any]:
    """The statistics of a run, over finished jobs. `terms/metrics.tsv` explains the keys.

    `constant_share` gives the least comm ratio of a model on several GPUs, `least_scale` a job's
    compute time on its fastest kind of GPUs over that of the trace (`lower_bound.py`).
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
        "makespan_bound_s": _bound_s(rows, tree, constant_share, least_scale),
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
        "preemption_cost_gpu_s": _preemption_cost_gpu_s(rows.placements),
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
) -> float:
    """Seconds from the first arrival, rounded as the makespan is, so that it never exceeds that.

    A cancelled job bounds nothing: nobody waits for the rest of its work.
    """
    finished = [row for row in rows.jobs if not row.cancelled]
    if not finished:
        return 0.0
    # Jobs that share a GPU may all do without it for most of the time. Shares count as such.
    whole = (row for row in rows.placements if row.gpu_milli == GPU_MILLI)
    sharers = max((1 + len(row.beside) for row in whole), default=1)
    first, end = makespan_bound(finished, tree.gpus * sharers, constant_share, least_scale)
    return end / TICKS_PER_S - first / TICKS_PER_S


def _kept(rows: Rows) -> Mapping[str, float]:
    """What a mean JCT consists of besides waiting: kept communication and computing, and the rest.

    Lost work is a cost of preemptions, whatever the GPUs did in it; so are checkpoints in it.
    """
    compute_s = {row.handle: row.job.compute_s for row in rows.jobs if not row.cancelled}
    comm_s = computing_s = 0.0
    wasted = saved = 0
    for row, lost in zip(rows.placements, lost_ticks(rows), strict=True):
        if row.handle not in compute_s:
            continue
        kept = row.end - row.start - row.stalled - lost
        # The part of the kept time in which the job wrote checkpoints.
        saving = row.checkpoint_s / row.pace_s
        kept_s = kept / TICKS_PER_S
        share = min(compute_s[row.handle] * row.compute_scale / row.pace_s, 1.0)
        comm_s += kept_s * (1.0 - share - saving)
        computing_s += kept_s * share
        wasted += row.stalled + lost
        saved += round(kept * saving)
    count = len(compute_s)
    return {
        "comm_kept_mean_s": comm_s / count,
        "compute_kept_mean_s": computing_s / count,
        "preemption_time_mean_s": wasted / TICKS_PER_S / count,
        **({"checkpoint_time_mean_s": saved / TICKS_PER_S / count} if saved else {}),
    }


def _comm_time_share(jobs: Table) -> float:
    """Share of the jobs' running time, with lost work, that is exposed communication."""
    comm_s, compute_s = float(np.sum(jobs["comm_s"])), float(np.sum(jobs["compute_s"]))
    return comm_s / (comm_s + compute_s)


def _shares(rows: Rows, available_gpu_s: float) -> Mapping[str, float]:
    """What the cluster's GPU time was used for. The first share is the sum of the next four."""
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


def _preemption_cost_gpu_s(placements: Sequence[PlacementRow]) -> float:
    """GPU-seconds lost or stalled because of preemptions and migrations."""
    wasted = sum(row.share(row.placement.gpus * (row.stalled + row.lost)) for row in placements)
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


def weighted_percentile(
    values: npt.NDArray[np.float64], weights: npt.NDArray[np.float64], percentile: float
) -> float:
    """The smallest value such that it and all smaller values have `percentile` % of the weight."""
    ranked = np.argsort(values, kind="stable")
    share = np.cumsum(weights[ranked])
    index = int(np.searchsorted(share, share[-1] * percentile / 100))
    return float(values[ranked][min(index, len(values) - 1)])


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
    """What jobs lost to each other; nothing if they could not."""
    if "contention_slowdown" not in jobs:
        return {}
    slowdown = np.asarray(jobs["contention_slowdown"])
    return {
        "contention_slowdown_mean": float(np.mean(slowdown)),
        "contention_slowdown_p95": percentile(slowdown, 95),
        "contention_lost_job_h": float(np.sum(jobs["contention_lost_s"])) / SECONDS_PER_HOUR,
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


@dataclass(slots=True)
class _Parts:
    """How a job spent the time in which it held GPUs."""

    compute_s: float = 0.0
    comm_s: float = 0.0
    undisturbed_s: float = 0.0
    """The running time that its iterations would have taken without other jobs on its links."""
    disturbed: bool = False
    stalled: int = 0
    lost: int = 0
    sources: tuple[str, ...] = ()


def _parts(
    placements: Sequence[PlacementRow], compute_s: Mapping[int, float]
) -> Mapping[int, _Parts]:
    """Handle -> parts. `compute_s` holds the compute time of one iteration of each job."""
    parts = {handle: _Parts() for handle in compute_s}
    for row in placements:
        part = parts[row.handle]
        running_s = (row.end - row.start - row.stalled - row.saving) / TICKS_PER_S
        share = compute_s[row.handle] * row.compute_scale / row.iteration_s
        part.compute_s += running_s * share
        part.comm_s += running_s * (1.0 - share)
        # What jobs on its GPUs cost it, it has not lost on links.
        undisturbed_s = row.alone_iteration_s * row.stretch
        part.undisturbed_s += running_s * (undisturbed_s / row.iteration_s)
        part.disturbed |= undisturbed_s != row.iteration_s
        part.stalled += row.stalled
        part.lost += row.lost
        if row.source not in part.sources:
            part.sources += (row.source,)
    return parts
