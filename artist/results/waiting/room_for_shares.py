"""GPUs that jobs share, and the room for further shares that these have over time.

A share is a pair: thousandths of a GPU, and compute slices. A MIG instance has at least one slice,
any other share has none, and the two are never on one GPU. Memory is not considered, nor where an
instance may begin. If these keep a job waiting, the policy gives that reason.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from artist.cluster.mig import COMPUTE_SLICES, compute_slices
from artist.engine.rows import PlacementRow
from artist.units import GPU_MILLI
from artist.workload.job import Job

Whole = npt.NDArray[np.int64]


class GpuShareSpans(NamedTuple):
    """One entry per GPU and time between two changes of who holds shares of it. Times are ticks."""

    start: Whole
    end: Whole
    left: Whole
    """Thousandths and compute slices that no job holds, a row each."""
    at_start: Whole
    """Those that no job holds both before and after the start; 0 if it was a whole free GPU."""
    sliced: Whole
    """1 in MIG mode."""

    def room(self, share: Whole, ticks: Whole) -> tuple[Whole, Whole]:
        """GPUs with room for a share from each tick until the next one, and at the tick itself."""
        fits = self.sliced == (share[1] > 0)
        stays, begins = (fits & (x >= share).all(axis=1) for x in (self.left, self.at_start))
        begun = _count(self.start[stays], ticks)
        steady = np.cumsum(begun - _count(self.end[stays], ticks))
        return steady, steady - begun + _count(self.start[begins], ticks)


def _count(at: Whole, ticks: Whole) -> Whole:
    counts: Whole = np.bincount(np.searchsorted(ticks, at), minlength=len(ticks)).astype(np.int64)
    return counts


def asked_shares(jobs: Sequence[Job]) -> Whole:
    """Thousandths and compute slices that each job asks for; 0 of jobs that ask for whole GPUs."""
    shares = [
        (job.gpu_milli, compute_slices([job.mig])) if job.is_share else (0, 0) for job in jobs
    ]
    return np.array(shares, dtype=np.int64).reshape(-1, 2)


def shared_gpus(intervals: Sequence[PlacementRow], shares: Whole) -> GpuShareSpans:
    """The GPUs that jobs shared, from the engine's rows."""
    rows = [row for row in intervals if row.gpu_milli < GPU_MILLI and row.end > row.start]
    holders = {(row.handle, row.end): {row.handle, *row.beside} for row in rows}
    milli, compute = shares.T.tolist()

    def left(some: Collection[int]) -> tuple[int, int]:
        return (
            GPU_MILLI - sum(milli[who] for who in some),
            COMPUTE_SLICES - sum(compute[who] for who in some),
        )

    entries = []
    for row in rows:
        if not row.first:
            continue
        now = {row.handle, *row.beside}
        # A share never moves, so jobs that held one just before held it on this GPU.
        former = [holders[who, row.start] for who in now if (who, row.start) in holders]
        at_start = left(now & former[0]) if former else (0, 0)
        entries.append((row.start, row.end, *left(now), *at_start, compute[row.handle] > 0))
    columns = np.array(entries, dtype=np.int64).reshape(-1, 7)
    start, end, sliced = columns[:, (0, 1, 6)].T
    return GpuShareSpans(start, end, columns[:, 2:4], columns[:, 4:6], sliced)
