"""What the GPUs that jobs hold do: compute, communicate, stand still, or work in vain.

    held = computing + communicating + stalled + lost

At each instant a job's GPUs are in one of three states:

- **stalled**: the job restarts, moves, is held by its policy or writes a checkpoint; it makes no
  progress
- **lost**: it works on an iteration that it will not finish, because it loses its GPUs before
- progressing: in an iteration of `iteration_s` the GPUs compute for `compute_s` and communicate,
  exposed, for the rest. So of g GPUs g x compute_s / iteration_s count as computing. Where jobs
  write checkpoints, `pace_s` (an iteration and its share of one) stands for iteration_s, and what
  it is longer counts as stalled

An elastic job's iteration on k GPUs counts k GPUs. What is kept of the computing GPU time is
therefore the same under every policy: the work of the trace, sum(compute_s x iterations x GPUs).

GPUs are counted in whole units of 2**-32 GPU, so the parts add up exactly, in any order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from artist.engine.rows import HELD, RE_RATED, PlacementRow, Rows
from artist.results.statistics.order import rising
from artist.units import TICKS_PER_S, Tick

Ticks = npt.NDArray[np.int64]

GPU = 1 << 32
"""Units of a GPU. 2**20 of them times 2**32 fit into 64 bits."""


class GpuTime(NamedTuple):
    """What the GPUs that jobs held did, in GPU-seconds."""

    computing: float
    communicating: float
    stalled: float
    lost: float


class GpusOverTime(NamedTuple):
    """What the GPUs that jobs hold do, in GPUs, at each of some ticks."""

    computing: npt.NDArray[np.float64]
    communicating: npt.NDArray[np.float64]
    stalled: npt.NDArray[np.float64]
    lost: npt.NDArray[np.float64]


def gpu_time(rows: Rows) -> GpuTime:
    """The GPU-seconds of a whole run."""
    computing = communicating = stalled = in_vain = 0
    units_of_rows = _computing(rows).tolist()  # as Python's numbers: the totals pass 64 bits
    for row, units, lost in zip(rows.placements, units_of_rows, lost_ticks(rows), strict=True):
        progressing = row.end - row.start - row.stalled - lost
        gpus, saving = row.placement.gpus * GPU, _saving(row)
        computing += units * progressing
        communicating += (gpus - units - saving) * progressing
        stalled += gpus * row.stalled + saving * progressing
        in_vain += gpus * lost
    totals = (computing, communicating, stalled, in_vain)
    return GpuTime(*(total / (GPU * TICKS_PER_S) for total in totals))


def gpus_over_time(rows: Rows) -> tuple[Ticks, GpusOverTime]:
    """Rising ticks, and what the held GPUs do from each tick to the next; 0 before the first."""
    placements = rows.placements
    if not placements:
        return np.empty(0, dtype=np.int64), GpusOverTime(*(np.empty(0) for _ in range(4)))
    start, end, stalled, lost = (
        np.array(column, dtype=np.int64)
        for column in (
            [row.start for row in placements],
            [row.end for row in placements],
            [row.stalled for row in placements],
            lost_ticks(rows),
        )
    )
    held = np.array([row.placement.gpus for row in placements], dtype=np.int64) * GPU
    computing = _computing(rows)
    saving = np.array([_saving(row) for row in placements], dtype=np.int64)
    moving, stopping = start + stalled, end - lost
    ticks = rising(start, moving, stopping, end)
    stalled_gpus = _steps(ticks, start, moving, held)
    if saving.any():
        stalled_gpus = stalled_gpus + _steps(ticks, moving, stopping, saving)
    return ticks, GpusOverTime(
        _steps(ticks, moving, stopping, computing),
        _steps(ticks, moving, stopping, held - computing - saving),
        stalled_gpus,
        _steps(ticks, stopping, end, held),
    )


def _steps(ticks: Ticks, begin: Ticks, end: Ticks, units: Ticks) -> npt.NDArray[np.float64]:
    """The sum of the units of all spans that contain a tick."""
    change = np.zeros(len(ticks), dtype=np.int64)
    np.add.at(change, np.searchsorted(ticks, begin), units)
    np.add.at(change, np.searchsorted(ticks, end), -units)
    return np.cumsum(change) / GPU


def _computing(rows: Rows) -> Ticks:
    """The units of GPUs that compute while the job progresses, for each interval; at most all."""
    compute_s = {row.handle: row.job.compute_s for row in rows.jobs}
    gpus = np.array([row.placement.gpus for row in rows.placements], dtype=np.int64)
    shares = np.array([compute_s[row.handle] / row.pace_s for row in rows.placements])
    units: Ticks = np.rint(gpus * GPU * np.minimum(shares, 1.0)).astype(np.int64)
    return units


def _saving(row: PlacementRow) -> int:
    """The units of GPUs that write checkpoints while the job progresses."""
    return int(row.placement.gpus * GPU * (row.checkpoint_s / row.pace_s))


def lost_ticks(rows: Rows) -> list[Tick]:
    """The ticks at the end of each interval in which the job worked in vain.

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
