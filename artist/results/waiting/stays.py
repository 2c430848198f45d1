"""What a run's rows say about who had how many GPUs, and when: small arrays for `waits.py`.

A stay is a job's time on one placement. The engine writes it as one interval or several. Of jobs
that share GPUs the first has them and the others none; where that changes, a stay is cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from artist.engine.rows import FINISHED, HELD, RE_RATED, PlacementRow, Rows, WaitRow
from artist.workload.job import Job

Whole = npt.NDArray[np.int64]


class Stays(NamedTuple):
    """One entry per stay, by job in the order of arrival, and by time. Times are ticks."""

    handle: Whole
    start: Whole
    end: Whole
    gpus: Whole
    ended: Sequence[str]
    """Why it ended, as in placements; empty for the last stay of a job."""


class WaitInputs(NamedTuple):
    """What waits are derived from. Arrays of jobs are in the order of arrival, by handle."""

    gpus: int
    """GPUs of the cluster."""
    jobs: Sequence[str]
    wanted: Whole
    least: Whole
    """Fewest GPUs that a job can run on."""
    arrival: Whole
    stays: Stays
    withdrawn: Whole
    """Tick and GPUs out of service from then on, one row per change."""
    reasons: Sequence[WaitRow]
    """What the policy gave as reasons."""
    head_blocks: bool
    """Whether the first waiting job in the order of arrival kept all others waiting."""


def wait_inputs(
    rows: Rows, gpus: int, jobs: Sequence[Job], *, head_blocks: bool = False
) -> WaitInputs:
    """The inputs of a run whose jobs have all finished."""
    arrival = np.zeros(len(jobs), dtype=np.int64)
    for row in rows.jobs:
        arrival[row.handle] = row.arrival
    return WaitInputs(
        gpus,
        [job.id for job in jobs],
        np.array([job.gpus for job in jobs], dtype=np.int64),
        np.array([job.gpus_min for job in jobs], dtype=np.int64),
        arrival,
        _stays(rows.placements),
        np.array(rows.withdrawn, dtype=np.int64).reshape(-1, 2),
        rows.wait_reasons,
        head_blocks,
    )


def _stays(intervals: Sequence[PlacementRow]) -> Stays:
    handle = np.array([row.handle for row in intervals], dtype=np.int64)
    # A job's intervals stand in the order of time: a stable sort by job keeps that.
    order = np.argsort(handle, kind="stable")
    last = np.array([row.reason not in (RE_RATED, HELD) for row in intervals], dtype=np.bool_)[
        order
    ]
    first = np.array([row.first for row in intervals], dtype=np.bool_)[order]
    last[:-1] |= first[1:] != first[:-1]
    ends = np.flatnonzero(last)
    begins = np.concatenate([[0], ends[:-1] + 1]) if len(ends) else ends
    start = np.array([row.start for row in intervals], dtype=np.int64)[order]
    closing = [intervals[index] for index in order[ends].tolist()]
    return Stays(
        handle[order][ends],
        start[begins],
        np.array([row.end for row in closing], dtype=np.int64),
        np.array([row.placement.gpus if row.first else 0 for row in closing], dtype=np.int64),
        ["" if row.reason is FINISHED else row.ended for row in closing],
    )
