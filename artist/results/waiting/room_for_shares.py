"""GPUs of which jobs hold shares, and for how many further shares they have room over time.

A share is thousandths of a GPU. That of a MIG instance is negative here: instances and other shares
do not lie on one GPU. Memory is not looked at, nor where an instance may begin: where these keep a
job off, the policy says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from artist.engine.rows import PlacementRow
from artist.units import GPU_MILLI
from artist.workload.job import Job

Whole = np.ndarray[tuple[int], np.dtype[np.int64]]


class SharedGpus(NamedTuple):
    """One entry per GPU and time between two changes of who holds shares of it. Times are ticks."""

    start: Whole
    end: Whole
    left: Whole
    """Thousandths that no job holds."""
    at_start: Whole
    """Those that no job holds both before and after the start; 0 if it was a whole free GPU."""
    sliced: Whole
    """1 in MIG mode."""

    def room(self, share: int, ticks: Whole) -> tuple[Whole, Whole]:
        """GPUs with room for a share from each tick until the next one, and at the tick itself."""
        fits = self.sliced == (share < 0)
        stays, begins = fits & (self.left >= abs(share)), fits & (self.at_start >= abs(share))
        begun = _count(self.start[stays], ticks)
        steady = np.cumsum(begun - _count(self.end[stays], ticks))
        return steady, steady - begun + _count(self.start[begins], ticks)


def _count(at: Whole, ticks: Whole) -> Whole:
    counts: Whole = np.bincount(np.searchsorted(ticks, at), minlength=len(ticks)).astype(np.int64)
    return counts


def asked_shares(jobs: Sequence[Job]) -> Whole:
    """The share that each job asks for; 0 of jobs that ask for whole GPUs."""
    shares = [job.gpu_milli * (-1 if job.mig else 1) if job.is_share else 0 for job in jobs]
    return np.array(shares, dtype=np.int64)


def shared_gpus(intervals: Sequence[PlacementRow], shares: Whole) -> SharedGpus:
    """The GPUs of which jobs held shares, from the engine's rows."""
    rows = [row for row in intervals if row.gpu_milli < GPU_MILLI and row.end > row.start]
    holders = {(row.handle, row.end): {row.handle, *row.beside} for row in rows}
    entries = []
    for row in rows:
        if not row.first:
            continue
        now, own = {row.handle, *row.beside}, shares[row.handle]
        # A share stays where it is, so whoever held one just before held it of this GPU.
        former = [holders[who, row.start] for who in now if (who, row.start) in holders]
        through = now & former[0] if former else set()
        left, at_start = (
            GPU_MILLI - sum(abs(int(shares[who])) for who in some) for some in (now, through)
        )
        entries.append((row.start, row.end, left, at_start if former else 0, int(own < 0)))
    return SharedGpus(*np.array(entries, dtype=np.int64).reshape(-1, 5).T)
