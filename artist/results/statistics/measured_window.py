"""The window of a run that is measured: without warm-up, without the time after the last arrivals.

A job is measured if it arrives in the window, however long it then takes. The cluster is measured
for as long as the window is open.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import compress
from typing import NamedTuple

import numpy as np

from artist.engine.rows import Rows
from artist.results.terms.columns import Column, Table
from artist.units import TICKS_PER_S, Tick


class MeasuredWindow(NamedTuple):
    """The time from one tick up to, but not including, another."""

    start: Tick
    end: Tick

    def has(self, arrival: Tick) -> bool:
        """Whether a job that arrives then is measured."""
        return self.start <= arrival < self.end

    def within(self, start: Tick, end: Tick) -> MeasuredWindow:
        """The part of the window from the first arrival of a run to its end."""
        return MeasuredWindow(max(self.start, start), min(self.end, end))


def measured_rows(rows: Rows, window: MeasuredWindow) -> Rows:
    """The rows of the measured jobs."""
    jobs = [row for row in rows.jobs if window.has(row.arrival)]
    handles = {row.handle for row in jobs}
    placements = [row for row in rows.placements if row.handle in handles]
    return replace(rows, jobs=jobs, placements=placements)


def held_rows(rows: Rows, window: MeasuredWindow) -> Rows:
    """The rows with the parts of placements that are inside the window, of all jobs."""
    parts = [
        row._replace(start=max(row.start, window.start), end=min(row.end, window.end))
        for row in rows.placements
        if window.start < row.end and row.start < window.end
    ]
    return replace(rows, placements=parts)


def measured_jobs(rows: Rows, jobs: Table, window: MeasuredWindow) -> Table:
    """The rows of the measured jobs in the table of jobs, which is in the order of arrival."""
    arrivals = [row.arrival for row in sorted(rows.jobs, key=lambda row: row.handle)]
    mask = np.array([window.has(arrival) for arrival in arrivals])

    def measured(column: Column) -> Column:
        return column[mask] if isinstance(column, np.ndarray) else [*compress(column, mask)]

    return {name: measured(column) for name, column in jobs.items()}


def measured_timeline(timeline: Table, window: MeasuredWindow) -> Table:
    """The timeline from the start of the window to its end, which is the last row."""
    time_s = np.asarray(timeline["time_s"])
    start_s, end_s = window.start / TICKS_PER_S, window.end / TICKS_PER_S
    inside = time_s[(time_s > start_s) & (time_s < end_s)]
    times = np.concatenate([[start_s], inside, [end_s]])
    at = np.searchsorted(time_s, times, side="right") - 1
    clipped = {name: np.asarray(one)[at] for name, one in timeline.items()}
    return {**clipped, "time_s": times}


def measured_shared_share(rows: Rows, gpus: int, window: MeasuredWindow) -> Mapping[str, float]:
    """The part of a cluster's GPU time in which jobs shared GPUs; nothing if they never did."""
    together = [row for row in rows.placements if row.beside and row.first]
    if not together:
        return {}
    spans = (
        row.placement.gpus * (min(row.end, window.end) - max(row.start, window.start))
        for row in together
    )
    shared = sum(max(span, 0) for span in spans)
    return {"gpu_shared_share": shared / (gpus * (window.end - window.start))}


def measured_shares(timeline: Table, gpus: int) -> Mapping[str, float]:
    """What the GPU time of a cluster was used for in a timeline."""
    length_s = np.diff(np.asarray(timeline["time_s"]))
    available_gpu_s = gpus * float(length_s.sum())
    columns = {"allocated": "gpus_held"} | {
        part: f"gpus_{part}" for part in ("computing", "communicating", "stalled", "lost")
    }
    return {
        f"gpu_{part}_share": math.fsum(length_s * np.asarray(timeline[column])[:-1])
        / available_gpu_s
        for part, column in columns.items()
    }
