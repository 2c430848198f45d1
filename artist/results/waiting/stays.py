"""What a run's rows say about who had how many GPUs, and when: small arrays for `waits.py`.

A stay is a job's time on one placement. The engine writes it as one interval or several. Jobs that
share GPUs hold them together, without a break until the last of them leaves.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from artist.engine.rows import FINISHED, HELD, RE_RATED, PlacementRow, Rows, WaitRow
from artist.results.waiting.room_for_shares import GpuShareSpans, asked_shares, shared_gpus
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
    holding: Whole
    """Index of one of the stays that held the same GPUs without a break; equal for all of these."""


class WaitInputs(NamedTuple):
    """What waits are derived from. Arrays of jobs are in the order of arrival, by handle."""

    gpus: int
    """GPUs of the cluster."""
    jobs: Sequence[str]
    wanted: Whole
    least: Whole
    """Fewest GPUs that a job can run on."""
    shares: Whole
    """The share of a GPU that a job asks for, as in `room_for_shares.py`, a row each; 0: whole
    GPUs."""
    arrival: Whole
    stays: Stays
    shared: GpuShareSpans
    withdrawn: Whole
    """Tick and GPUs out of service from then on, one row per change."""
    reasons: Sequence[WaitRow]
    """The reasons that the policy gave."""
    head_blocks: bool
    """Whether the first waiting job in the order of arrival kept all others waiting."""


def wait_inputs(
    rows: Rows, gpus: int, jobs: Sequence[Job], *, head_blocks: bool = False
) -> WaitInputs:
    """The inputs of a run whose jobs have all finished."""
    arrival = np.zeros(len(jobs), dtype=np.int64)
    for row in rows.jobs:
        arrival[row.handle] = row.arrival
    shares = asked_shares(jobs)
    return WaitInputs(
        gpus,
        [job.id for job in jobs],
        np.array([job.gpus for job in jobs], dtype=np.int64),
        np.array([job.gpus_min for job in jobs], dtype=np.int64),
        shares,
        arrival,
        _stays(rows.placements),
        shared_gpus(rows.placements, shares),
        np.array(rows.withdrawn, dtype=np.int64).reshape(-1, 2),
        rows.wait_reasons,
        head_blocks,
    )


def _stays(intervals: Sequence[PlacementRow]) -> Stays:
    """Stays on GPUs: each spans a job's intervals between two losses of its GPUs."""
    handle = np.array([row.handle for row in intervals], dtype=np.int64)
    # A job's intervals stand in the order of time: a stable sort by job keeps that.
    order = np.argsort(handle, kind="stable")
    last = np.array([row.reason not in (RE_RATED, HELD) for row in intervals], dtype=np.bool_)
    ends = np.flatnonzero(last[order])
    begins = np.concatenate([[0], ends[:-1] + 1]) if len(ends) else ends
    start = np.array([row.start for row in intervals], dtype=np.int64)[order]
    closing = [intervals[index] for index in order[ends].tolist()]
    stays = Stays(
        handle[order][ends],
        start[begins],
        np.array([row.end for row in closing], dtype=np.int64),
        np.array([row.placement.gpus for row in closing], dtype=np.int64),
        ["" if row.reason is FINISHED else row.ended for row in closing],
        np.arange(len(ends)),
    )
    shared = [row for row in intervals if row.beside and row.end > row.start]
    return stays._replace(holding=_holdings(stays, shared)) if shared else stays


def _holdings(stays: Stays, shared: Sequence[PlacementRow]) -> Whole:
    """`Stays.holding`, from all intervals in which jobs shared GPUs (by union-find)."""
    places = range(len(stays.handle))
    # Stays are sorted by job and time. A stay of no time shares nothing.
    lasting = [place for place in places if stays.end[place] > stays.start[place]]
    begins = [(int(stays.handle[place]), int(stays.start[place])) for place in lasting]
    holding = list(places)

    def root(place: int) -> int:
        while holding[place] != place:
            holding[place] = place = holding[holding[place]]
        return place

    for row in shared:
        own, *others = (
            root(lasting[bisect_right(begins, (handle, row.start)) - 1])
            for handle in (row.handle, *row.beside)
        )
        for other in others:
            holding[other] = own
    return np.array([root(place) for place in places], dtype=np.int64)
