"""Job by job: does our run start and finish each job at the recorded times?

Our run uses the original's own order of machines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from artist.errors import TraceError
from artist.units import seconds
from validation.original.files import RecordedTrace, read_rows, trace_with
from validation.original.runs import run

# SCHEME_RACKSracks_TRACE, e.g. Dally-auto_2racks_batch
_NAME = re.compile(r"(?P<scheme>[^_]+)_(?P<racks>\d+)r(acks)?_(?P<trace>.+)")

SAME_S = 1e-3
"""Times are recorded to a thousandth of a second."""


class Times(NamedTuple):
    """The times of one job, in seconds."""

    arrival_s: float
    start_s: float
    finish_s: float


@dataclass(frozen=True, slots=True)
class RecordedJobs:
    """When a recorded run started and finished its jobs."""

    path: Path
    scheme: str
    racks: int
    times: Mapping[str, Times]


def read_jobs(path: Path) -> RecordedJobs:
    """Read a file of results per job.

    Raises:
        TraceError: its name does not say which scheme ran, or a row cannot be read.
    """
    match = _NAME.fullmatch(path.name.removesuffix(".gz").removesuffix(".csv"))
    if match is None:
        raise TraceError(f"{path}: expected a name like Dally-auto_2racks_batch.csv")
    times = {}
    for line, row in enumerate(read_rows(path), start=2):
        try:
            seconds_of_job = (float(row[name]) for name in ("arrival", "start", "end"))
            times[row["job_id"]] = Times(*seconds_of_job)
        except (KeyError, ValueError, TypeError) as cause:
            raise TraceError(f"{path}:{line}: not a row of results per job ({cause!r})") from cause
    return RecordedJobs(path, match["scheme"], int(match["racks"]), times)


def jobs_trace(recorded: RecordedJobs, traces: Sequence[RecordedTrace]) -> RecordedTrace:
    """The trace of the run.

    Raises:
        TraceError: the run is of none of these traces.
    """
    arrivals = {name: times.arrival_s for name, times in recorded.times.items()}
    return trace_with(arrivals, traces, recorded.path)


def compare_jobs(
    pool: Executor, runs: Sequence[tuple[RecordedJobs, RecordedTrace]]
) -> list[dict[str, Any]]:
    """Per run: how many jobs start and finish at the recorded times, and the largest difference."""
    return list(pool.map(_compared, [(recorded, trace.name) for recorded, trace in runs]))


def _compared(run_and_trace: tuple[RecordedJobs, str]) -> dict[str, Any]:
    """A run with its recording, in a worker."""
    recorded, trace = run_and_trace
    largest = dict.fromkeys(recorded.times, float("inf"))
    for row in run(trace, recorded.scheme, recorded.racks, None).jobs:
        if theirs := recorded.times.get(row.job.id):
            start, finish = seconds(row.start), seconds(row.finish)
            largest[row.job.id] = max(abs(start - theirs.start_s), abs(finish - theirs.finish_s))
    return {
        "file": recorded.path.name,
        "jobs": len(recorded.times),
        "agree": sum(difference < SAME_S for difference in largest.values()),
        "largest_difference_s": max(largest.values()),
    }
