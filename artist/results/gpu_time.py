"""How jobs use the GPUs that they hold: to compute, to communicate, not at all, or for lost work.

    held = computing + communicating + stalled + lost

At each instant a job's GPUs are in one of three states:

- **stalled**: the job starts, restarts, moves, is held by its policy or writes a checkpoint; it
  makes no progress
- **lost**: it works on an iteration that it will not finish, because it loses its GPUs before
- **progressing**: in an iteration of `iteration_s` the GPUs compute for `compute_s`, and
  communicate, exposed, for the rest. So of g GPUs g x compute_s / iteration_s count as computing.
  Here compute_s is for the job's kind of GPUs. If the job writes checkpoints, `pace_s` (an
  iteration and its share of a checkpoint) replaces iteration_s, and the excess counts as stalled

An elastic job's iteration on k GPUs counts k GPUs. Where all kinds of GPUs are as fast and jobs
share none, what is kept of the computing GPU time is therefore the same under every policy: the
work of the trace, sum(compute_s x iterations x GPUs).

Jobs that share a GPU each hold an equal share of it, or the one that they ask for, and a job
computes for as large a part of an iteration as on GPUs of its own. If n jobs take turns, an
iteration lasts n times as long on an nth of the GPUs, so the computing GPU time stays the same; a
faster pair needs less, a slower one more.

GPUs are counted in whole units of 2**-32 GPU, so the parts add up exactly, in any order.
"""

from __future__ import annotations

from operator import mul
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from artist.cluster.kinds import kinds_of
from artist.cluster.placement import machine_counts
from artist.cluster.tree import ClusterTree, gpus_by_kind
from artist.engine.rows import HELD, RE_RATED, Rows
from artist.results.statistics.sorted_values import rising
from artist.results.terms.columns import Table, typed
from artist.units import GPU_MILLI, TICKS_PER_S, Tick, ticks

Ticks = npt.NDArray[np.int64]

GPU = 1 << 32
"""Units per GPU. The units of 2**20 GPUs fit into 64 bits."""


class GpuTime(NamedTuple):
    """The GPU time that jobs held, by use, in GPU-seconds."""

    computing: float
    communicating: float
    stalled: float
    lost: float


class GpusOverTime(NamedTuple):
    """The number of GPUs that jobs hold, by use, at each of some ticks."""

    computing: npt.NDArray[np.float64]
    communicating: npt.NDArray[np.float64]
    stalled: npt.NDArray[np.float64]
    lost: npt.NDArray[np.float64]


class _Intervals(NamedTuple):
    """Per interval: its ticks, and the units of GPUs that compute, or write checkpoints."""

    start: Ticks
    end: Ticks
    stalled: Ticks
    lost: Ticks
    held: Ticks
    computing: Ticks
    """While the job progresses; at most all that it holds."""
    saving: Ticks
    """While the job progresses."""


def gpu_time(rows: Rows) -> GpuTime:
    """The GPU-seconds of a whole run."""
    of = _intervals(rows)
    progressing = of.end - of.start - of.stalled - of.lost
    totals = (
        _product(of.computing, progressing),
        _product(of.held - of.computing - of.saving, progressing),
        _product(of.held, of.stalled) + _product(of.saving, progressing),
        _product(of.held, of.lost),
    )
    return GpuTime(*(total / (GPU * TICKS_PER_S) for total in totals))


def gpus_over_time(rows: Rows) -> tuple[Ticks, GpusOverTime]:
    """Ascending ticks, and the use of held GPUs from each tick to the next; 0 before the first."""
    if not rows.placements:
        return np.empty(0, dtype=np.int64), GpusOverTime(*(np.empty(0) for _ in range(4)))
    of = _intervals(rows)
    moving, stopping = of.start + of.stalled, of.end - of.lost
    ticks = rising(of.start, moving, stopping, of.end)
    stalled_gpus = _steps(ticks, of.start, moving, of.held)
    if of.saving.any():
        stalled_gpus = stalled_gpus + _steps(ticks, moving, stopping, of.saving)
    return ticks, GpusOverTime(
        _steps(ticks, moving, stopping, of.computing),
        _steps(ticks, moving, stopping, of.held - of.computing - of.saving),
        stalled_gpus,
        _steps(ticks, stopping, of.end, of.held),
    )


def _intervals(rows: Rows) -> _Intervals:
    """The rows of placements as columns, with how many GPUs compute and write checkpoints."""
    placements = rows.placements
    compute_s = {row.handle: row.job.compute_s for row in rows.jobs}
    held = np.array([row.share(row.placement.gpus * GPU) for row in placements], dtype=np.int64)
    checkpoint_s = np.array([row.checkpoint_s for row in placements])
    pace_s = np.array([row.iteration_s for row in placements]) + checkpoint_s
    shares = np.array([compute_s[row.handle] * row.compute_scale for row in placements]) / pace_s
    return _Intervals(
        np.array([row.start for row in placements], dtype=np.int64),
        np.array([row.end for row in placements], dtype=np.int64),
        np.array([row.stalled for row in placements], dtype=np.int64),
        np.array(lost_ticks(rows), dtype=np.int64),
        held,
        np.rint(held * np.minimum(shares, 1.0)).astype(np.int64),
        (held * (checkpoint_s / pace_s)).astype(np.int64),
    )


def _product(units: Ticks, ticks: Ticks) -> int:
    """The sum of units x ticks, in Python's integers, since it exceeds 64 bits."""
    return sum(map(mul, units.tolist(), ticks.tolist()))


def _steps(ticks: Ticks, begin: Ticks, end: Ticks, units: Ticks) -> npt.NDArray[np.float64]:
    """The sum of the units of all spans that contain a tick."""
    change = np.zeros(len(ticks), dtype=np.int64)
    np.add.at(change, np.searchsorted(ticks, begin), units)
    np.add.at(change, np.searchsorted(ticks, end), -units)
    return np.cumsum(change) / GPU


def lost_ticks(rows: Rows) -> list[Tick]:
    """The ticks at the end of each interval whose work was lost.

    Lost work may have begun before the job was held or got another rate, in an earlier interval of
    the same stay: an iteration, or all since the last checkpoint before a failure.
    """
    lost = [0] * len(rows.placements)
    beyond: dict[int, Tick] = {}
    for index in reversed(range(len(rows.placements))):
        row = rows.placements[index]
        whole = row.lost + (beyond.pop(row.handle, 0) if row.reason in (RE_RATED, HELD) else 0)
        if whole:
            lost[index] = min(whole, row.end - row.start - row.stalled)
        beyond[row.handle] = whole - lost[index]
    return lost


def first_start_ticks(rows: Rows) -> list[Tick]:
    """The ticks of each interval that are the cost of its job's first start."""
    left = {row.handle: ticks(row.job.first_start_s) for row in rows.jobs if row.job.first_start_s}
    spent = [0] * len(rows.placements)
    for index, row in enumerate(rows.placements if left else ()):
        if row.handle in left:
            spent[index] = min(row.stalled, left[row.handle])
            left[row.handle] -= spent[index]
            if row.reason not in (RE_RATED, HELD):  # its first stay ends
                del left[row.handle]
    return spent


def held_by_kind_s(rows: Rows, tree: ClusterTree) -> dict[str, float]:
    """GPU-seconds that jobs held on each kind, in the order of machines."""
    held = dict.fromkeys(gpus_by_kind(tree), 0)
    for row in rows.placements:
        for machine, count in machine_counts(tree, row.placement).items():
            milli = row.held_milli // row.placement.gpus * count
            held[tree.kinds[machine]] += milli * (row.end - row.start)
    return {kind: parts / (GPU_MILLI * TICKS_PER_S) for kind, parts in held.items()}


def kind_table(rows: Rows, tree: ClusterTree, makespan_s: float) -> Table:
    """How much GPU time jobs held on each kind: a row per kind, in the order of machines."""
    gpus, held_s = gpus_by_kind(tree), held_by_kind_s(rows, tree)
    jobs: dict[str, set[int]] = {kind: set() for kind in gpus}
    for row in rows.placements:
        for kind in kinds_of(tree, row.placement):
            jobs[kind].add(row.handle)
    return typed(
        "gpu_kinds",
        {
            "gpu_kind": list(gpus),
            "kind_gpus": list(gpus.values()),
            "kind_jobs": [len(jobs[kind]) for kind in gpus],
            "kind_gpu_h": [held_s[kind] / 3600.0 for kind in gpus],
            "kind_allocated_share": [held_s[k] / (count * makespan_s) for k, count in gpus.items()],
        },
    )
