"""Readers of the files that runs of the original simulator left, and of its traces.

The `README.md` beside the recorded runs describes the columns. Files named `.gz` are compressed.
"""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from artist.errors import TraceError
from artist.workload.job import Job
from artist.workload.models import canonical

# VARIANT_SCHEME_RACKSr_TRACE, e.g. fix_Dally-auto_2r_batch
_NAME = re.compile(r"(?P<variant>fix|asis)_(?P<scheme>[^_]+)_(?P<racks>\d+)r(acks)?_(?P<trace>.+)")
# Recorded times have at least three decimal places. Arrivals that differ by less are the same.
ARRIVAL_S = 2e-3


class Allocation(NamedTuple):
    """One row: a job got GPUs (ALLOC), lost them at the end of its lease (EXPIRE), or finished."""

    event: str
    time_s: float
    job: str
    gpus: int
    priority: float
    waited_s: float
    speed: float
    """Compute / (compute + communication); only for allocations."""
    remaining: int
    """Iterations that are left, of all GPUs together; only for expiries."""
    sockets: tuple[tuple[int, int, int], ...]
    """(rack, machine, socket) of each GPU; only for allocations."""


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """The rows of a run, and what the name of its file says about it."""

    path: Path
    scheme: str
    racks: int
    trace: str
    rows: Sequence[Allocation]


@dataclass(frozen=True, slots=True)
class RecordedTrace:
    """A trace that the original was run on, with its name in the results."""

    path: Path
    name: str
    jobs: tuple[Job, ...]


def read_run(path: Path) -> RecordedRun:
    """Read a file of allocations.

    Raises:
        TraceError: its name does not say which scheme ran, or a row cannot be read.
    """
    stem = path.name.removesuffix(".gz").removesuffix(".csv")
    match = _NAME.fullmatch(stem)
    if match is None:
        raise TraceError(
            f"{path}: expected a name like fix_Dally-auto_2r_batch.csv.gz "
            "(variant, scheme, racks, trace)"
        )
    if match["variant"] != "fix":
        raise TraceError(f"{path}: only leak-free runs ('fix') can be compared")
    rows = []
    for line, row in enumerate(read_rows(path), start=2):
        try:
            rows.append(_allocation(row))
        except (KeyError, ValueError, TypeError) as cause:
            raise TraceError(f"{path}:{line}: not a row of allocations ({cause!r})") from cause
    return RecordedRun(path, match["scheme"], int(match["racks"]), match["trace"], rows)


def read_trace(path: Path, name: str) -> RecordedTrace:
    """Read a trace. Its jobs are in the order of arrival.

    Raises:
        TraceError: a row cannot be read.
    """
    jobs = []
    for line, row in enumerate(read_rows(path), start=2):
        try:
            jobs.append(
                Job(
                    id=row["job_id"],
                    arrival_s=float(row["arrival_s"]),
                    gpus=int(row["gpus"]),
                    model=canonical(row["model"]),
                    iterations=int(row["iterations"]),
                    compute_s=float(row["compute_s"]),
                    user=row.get("user") or "",
                )
            )
        except (KeyError, ValueError, TypeError) as cause:
            raise TraceError(f"{path}:{line}: not a row of a trace ({cause!r})") from cause
    if not jobs:
        raise TraceError(f"{path}: a trace without jobs")
    # Among equal bids, the original serves the job with the smaller number first.
    jobs.sort(key=lambda job: (job.arrival_s, _number(job.id)))
    return RecordedTrace(path, name, tuple(jobs))


def read_results(path: Path) -> list[Mapping[str, str]]:
    """The rows of leak-free runs in a file of results.

    Raises:
        TraceError: a row lacks a scheme, a trace, or a number that is compared.
    """
    rows: list[Mapping[str, str]] = []
    for line, row in enumerate(read_rows(path), start=2):
        if row.get("variant") != "fix":
            continue
        try:
            complete = row["scheme"] and row["trace"] and int(row["racks"]) > 0
            complete = complete and float(row["jct_mean_s"]) > 0 and float(row["makespan_s"]) > 0
        except (KeyError, ValueError, TypeError) as cause:
            raise TraceError(f"{path}:{line}: not a row of results ({cause!r})") from cause
        if not complete:
            raise TraceError(f"{path}:{line}: a row of results without scheme, trace or times")
        rows.append(row)
    return rows


def trace_of(run: RecordedRun, traces: Sequence[RecordedTrace]) -> RecordedTrace:
    """The trace of a run. Its jobs arrive when the run's jobs began to wait.

    Raises:
        TraceError: the run is of none of these traces.
    """
    arrivals: dict[str, float] = {}
    for row in run.rows:
        if row.event == "ALLOC":
            arrivals.setdefault(row.job, row.time_s - row.waited_s)
    return trace_with(arrivals, traces, run.path)


def trace_with(
    arrivals: Mapping[str, float], traces: Sequence[RecordedTrace], path: Path
) -> RecordedTrace:
    """The trace with these jobs, given as name -> arrival in seconds.

    Raises:
        TraceError: no trace has these jobs. The message names the file `path`.
    """
    for trace in traces:
        jobs = {job.id: job.arrival_s for job in trace.jobs}
        if all(abs(jobs.get(name, -1) - at) < ARRIVAL_S for name, at in arrivals.items()):
            return trace
    tried = ", ".join(str(trace.path) for trace in traces)
    raise TraceError(f"{path}: its jobs are in none of the traces ({tried})")


def _number(name: str) -> int:
    return int(name) if name.isdecimal() else 0


def read_rows(path: Path) -> Iterator[dict[str, str]]:
    """The rows of a CSV file.

    Raises:
        TraceError: the file cannot be read.
    """
    try:
        content = path.read_bytes()
        text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    except (OSError, EOFError, UnicodeDecodeError) as cause:
        raise TraceError(f"{path}: cannot be read ({cause})") from cause
    yield from csv.DictReader(text.splitlines())


def _allocation(row: Mapping[str, str]) -> Allocation:
    """A row of a recorded run. Columns that its event lacks are 0 or empty."""
    event = row["event"]
    alloc, expiry = event == "ALLOC", event == "EXPIRE"
    sockets = [gpu.split(".") for gpu in row["gpus_list"].split()] if alloc else []
    return Allocation(
        event,
        float(row["time_s"]),
        row["job_id"],
        int(row["gpus"]),
        float(row["priority"]) if alloc else 0.0,
        float(row["waited_s"]) if alloc else 0.0,
        float(row["speed"]) if alloc else 0.0,
        # An expiry has another number in this column.
        int(row["speed"]) if expiry else 0,
        tuple((int(rack), int(machine), int(socket)) for rack, machine, socket, _ in sockets),
    )
