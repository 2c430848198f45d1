"""Job by job: does a run in the original's machine order start and finish each job when it did?"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from artist.errors import TraceError
from artist.units import seconds
from validation.original.files import ReferenceTrace, read_rows, trace_with
from validation.original.runs import run

# SCHEME_RACKSracks_TRACE, e.g. Dally-auto_2racks_batch
_NAME = re.compile(r"(?P<scheme>[^_]+)_(?P<racks>\d+)r(acks)?_(?P<trace>.+)")

SAME_S = 1e-3
"""Times are recorded to a thousandth of a second."""


class Times(NamedTuple):
    """Of one job, in seconds."""

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
    """A file of results per job.

    Raises:
        TraceError: its name does not say which scheme ran, or a row cannot be read.
    """
    match = _NAME.fullmatch(path.name.removesuffix(".gz").removesuffix(".csv"))
    if match is None:
        raise TraceError(f"{path}: expected a name like Dally-auto_2racks_batch.csv")
    times = {}
    for line, row in enumerate(read_rows(path), start=2):
        try:
            found = (float(row[name]) for name in ("arrival", "start", "end"))
            times[row["job_id"]] = Times(*found)
        except (KeyError, ValueError, TypeError) as cause:
            raise TraceError(f"{path}:{line}: not a row of results per job ({cause!r})") from cause
    return RecordedJobs(path, match["scheme"], int(match["racks"]), times)


def jobs_trace(recorded: RecordedJobs, traces: Sequence[ReferenceTrace]) -> ReferenceTrace:
    """The trace that the run was given.

    Raises:
        TraceError: none of them.
    """
    arrivals = {name: times.arrival_s for name, times in recorded.times.items()}
    return trace_with(arrivals, traces, recorded.path)


def compare_jobs(
    pool: Executor, asked: Sequence[tuple[RecordedJobs, ReferenceTrace]]
) -> list[dict[str, Any]]:
    """Per run: how many jobs start and finish at the same time, and the largest difference."""
    return list(pool.map(_compared, [(recorded, trace.name) for recorded, trace in asked]))


def _compared(asked: tuple[RecordedJobs, str]) -> dict[str, Any]:
    recorded, trace = asked
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
