"""Microsoft Philly's `cluster_job_log` (Jeon et al., ATC'19).

Source: https://github.com/msr-fiddle/philly-traces, README and notebook. A JSON list of jobs:
jobid, vc, user, status (Pass, Killed, Failed), submitted_time and attempts. An attempt has
start_time, end_time and detail, which lists its machines (ip), each with its gpus. Times are
local times. They jump back an hour once, in November 2017.

Rules: the demand of a job is that of its first attempt that lists GPUs (as in the notebook). The
run time is the sum over the attempts that have both times, because between attempts the job
waits. A job whose last attempt has no end was still running when the log ends.
"""

from __future__ import annotations

from typing import Any

from artist.trace.foreign.rows import STILL_RUNNING, ForeignJob, JobOrReason, TraceRow, never_ran
from artist.trace.native.table import MAX_GPUS
from artist.trace.native.time_units import moment_s

COLUMNS = ("jobid", "status", "attempts", "submitted_time", "user")

NO_GPUS = "no GPUs recorded"
NO_TIMES = "no times recorded"
ENDS_FIRST = "ends before it starts"


def job(row: TraceRow) -> JobOrReason:
    """The job in a row, or why the row is dropped."""
    submit_s = row.moment("submitted_time")
    attempts = _attempts(row)
    if not attempts:
        return never_ran(failed=row.text("status").casefold() == "failed")
    gpus = next((n for n in (_gpus(row, x) for x in attempts) if n), 0)
    spans = [(_time(row, x, "start_time"), _time(row, x, "end_time")) for x in attempts]
    if not gpus:
        return NO_GPUS
    if spans[-1][1] is None and spans[-1][0] is not None:
        return STILL_RUNNING
    runs_s = [end - start for start, end in spans if start is not None and end is not None]
    if not runs_s:
        return NO_TIMES
    if sum(runs_s) < 0:  # the clock was set back while it ran
        return ENDS_FIRST
    # A job without a user gets its virtual cluster as the user.
    user = row.text("user") or row.text("vc")
    return ForeignJob(row.index, row.text("jobid"), submit_s, gpus, sum(runs_s), user=user)


def _attempts(row: TraceRow) -> list[dict[str, Any]]:
    """The attempts of a job, checked to be objects."""
    attempts = row.table.columns["attempts"][row.index]
    if not isinstance(attempts, list) or not all(isinstance(x, dict) for x in attempts):
        raise row.error("attempts", "a list of objects with start_time, end_time and detail")
    return attempts


def _gpus(row: TraceRow, attempt: dict[str, Any]) -> int:
    """GPUs of one attempt, over all its machines."""
    total = 0
    detail = attempt.get("detail") or []
    for machine in detail if isinstance(detail, list) else [None]:
        gpus = machine.get("gpus") if isinstance(machine, dict) else None
        if not isinstance(gpus, list):
            raise row.error("attempts", "in each detail a list of machines with a list of gpus")
        total += len(gpus)
    if total > MAX_GPUS:
        raise row.error("attempts", f"at most {MAX_GPUS} GPUs")
    return total


def _time(row: TraceRow, attempt: dict[str, Any], name: str) -> float | None:
    """A time of an attempt, in seconds since 1970; None where the log does not have it."""
    text = attempt.get(name)
    if text is None or text in ("", "None"):
        return None
    seconds = moment_s(text) if isinstance(text, str) else None
    if seconds is None:
        raise row.error("attempts", f"in each attempt a {name} such as 2017-10-07 01:12:09")
    return seconds
