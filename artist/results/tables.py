"""The tables of a run: jobs, placements and the cluster's state over time, from the engine's rows.

The formulas are in `terms/tables.tsv`. Times are seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from artist.cluster.kinds import kinds_of, several_kinds
from artist.cluster.placement import Placement, machine_counts
from artist.cluster.placement_shape import signature
from artist.cluster.tree import ClusterTree
from artist.engine.rows import PlacementRow, Rows, Timeline
from artist.results.fragmentation import fragmented_gpus
from artist.results.gpu_time import first_start_ticks, gpus_over_time
from artist.results.statistics.sorted_values import rising
from artist.results.terms.columns import Column, Table, typed
from artist.units import GPU_MILLI, TICKS_PER_S


def seconds_column(ticks: Sequence[int] | npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Ticks to seconds."""
    return np.array(ticks, dtype=np.int64) / TICKS_PER_S


def job_table(
    rows: Rows, alone_s: Sequence[float] | None = None, *, contended: bool = False
) -> Table:
    """One row per job that finished or was cancelled, in the order of arrival.

    `alone_s` (`isolated_run_time.py`) has a value per handle; without it, the columns that need it
    are left out. If jobs are `contended`, columns say what they lost on links.
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
    if any(row.job.first_start_s for row in jobs):
        spent = dict.fromkeys(parts, 0)
        for row, starting in zip(rows.placements, first_start_ticks(rows), strict=True):
            spent[row.handle] += starting
        columns["first_start_s"] = seconds_column([spent[row.handle] for row in jobs])
    table = typed("jobs", columns)
    for name in dict.fromkeys(name for row in jobs for name in row.job.hints):
        table[name] = [row.job.hints.get(name) for row in jobs]
    return table


def _gpu_share(milli: Sequence[int]) -> Table:
    """The column of each job's share of a GPU; none if all jobs hold whole GPUs."""
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
    """The columns of what jobs lost on links: their running time less the same without others."""
    running_s = np.array([part.compute_s + part.comm_s for part in parts])
    undisturbed_s = np.array([part.undisturbed_s for part in parts])
    # A job that was never slowed has lost nothing, to the last bit.
    disturbed = np.array([part.disturbed for part in parts], dtype=bool)
    lost_s = np.where(disturbed, running_s - undisturbed_s, 0.0)
    slowdown = np.divide(lost_s, undisturbed_s, out=np.zeros(len(parts)), where=undisturbed_s > 0)
    told: Table = {"contention_slowdown": slowdown, "contention_lost_s": lost_s}
    own_s = np.array([part.own_s for part in parts])
    if own_s.any():
        told["contention_own_s"] = own_s
    return told


def placement_table(
    rows: Rows,
    tree: ClusterTree,
    job_ids: Sequence[str],
    orders: Mapping[tuple[int, Placement], str],
) -> Table:
    """One row per interval, in the order in which the intervals ended.

    `orders` are orders of ranks by handle and GPUs, which signatures end in: `8,8@tensor-data`.
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
        **_own_iterations(placements),
        **_compute_iterations(rows),
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


def _own_iterations(placements: Sequence[PlacementRow]) -> Table:
    """The column of iterations on own links; none if these carry all that their jobs send."""
    if not any(row.own_longer_s for row in placements):
        return {}
    return {"own_iteration_s": [row.alone_iteration_s + row.own_longer_s for row in placements]}


def _compute_iterations(rows: Rows) -> Table:
    """The column of compute times; none if every iteration computes as long as the trace says."""
    if all(row.compute_scale == 1.0 for row in rows.placements):
        return {}
    known = {row.handle: row.job.compute_s for row in rows.jobs}
    return {
        "compute_iteration_s": [known[row.handle] * row.compute_scale for row in rows.placements]
    }


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
    """The values at `ticks` of a step function that changes at `own`; 0 before its first change."""
    steps: npt.NDArray[np.float64] = np.concatenate([[0.0], values])
    return steps[np.searchsorted(own, ticks, side="right")]


def placement_text(tree: ClusterTree, placement: Placement) -> str:
    """`machine:gpus` for each machine, ascending, e.g. `0:8 5:4`."""
    counts = machine_counts(tree, placement)
    return " ".join(f"{machine}:{gpus}" for machine, gpus in counts.items())


@dataclass(slots=True)
class _Parts:
    """How a job spent the time in which it held GPUs."""

    compute_s: float = 0.0
    comm_s: float = 0.0
    undisturbed_s: float = 0.0
    """The running time that its iterations would have taken with no link full."""
    own_s: float = 0.0
    """The running time that its own full uplinks added."""
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
        # `stretch` is the slowdown by jobs on the same GPUs; that time is not lost on links.
        undisturbed_s = row.alone_iteration_s * row.stretch
        part.undisturbed_s += running_s * (undisturbed_s / row.iteration_s)
        part.own_s += running_s * (row.own_longer_s * row.stretch / row.iteration_s)
        part.disturbed |= undisturbed_s != row.iteration_s
        part.stalled += row.stalled
        part.lost += row.lost
        if row.source not in part.sources:
            part.sources += (row.source,)
    return parts
