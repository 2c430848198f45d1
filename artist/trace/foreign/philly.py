"""Microsoft Philly's `cluster_job_log` (Jeon et al., ATC'19).

Source: https://github.com/msr-fiddle/philly-traces, README and notebook. A JSON list
of jobs: jobid, vc, user, status (Pass, Killed, Failed), submitted_time and
attempts, each with start_time, end_time and detail, a list of machines (ip) with
their gpus. Local times, which jump back an hour once in November 2017.

Rules: the demand is that of the first attempt that lists GPUs (as in the notebook);
the run time is the sum over the attempts that have both times, for between them the
job waits. A job whose last attempt has no end was running when the log ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from artist.trace.foreign.records import (
    FAILED_FIRST,
    NEVER_STARTED,
    STILL_RUNNING,
    Foreign,
    Found,
    Record,
    moment_s,
    records,
)
from artist.trace.foreign.rules import Rules
from artist.trace.native.table import MAX_GPUS, Table

COLUMNS = ("jobid", "status", "attempts", "submitted_time", "user")

NO_GPUS = "no GPUs recorded"
NO_TIMES = "no times recorded"
ENDS_FIRST = "ends before it starts"


def read(table: Table, rules: Rules) -> Iterator[Found]:
    """Jobs and reasons."""
    del rules
    return map(_job, records(table))


def _job(record: Record) -> Found:
    submit_s = record.moment("submitted_time")
    if submit_s is None:
        raise record.error("submitted_time", "a time as in 2017-10-07 01:11:39")
    attempts = _attempts(record)
    if not attempts:
        failed = record.text("status").casefold() == "failed"
        return FAILED_FIRST if failed else NEVER_STARTED
    gpus = next((n for n in (_gpus(record, x) for x in attempts) if n), 0)
    spans = [(_time(record, x, "start_time"), _time(record, x, "end_time")) for x in attempts]
    if not gpus:
        return NO_GPUS
    if spans[-1][1] is None and spans[-1][0] is not None:
        return STILL_RUNNING
    runs_s = [end - start for start, end in spans if start is not None and end is not None]
    if not runs_s:
        return NO_TIMES
    if sum(runs_s) < 0:
        return ENDS_FIRST
    # The virtual cluster is the tenant of a job without a user.
    user = record.text("user") or record.text("vc")
    return Foreign(record.row, record.text("jobid"), submit_s, gpus, sum(runs_s), user=user)


def _attempts(record: Record) -> list[dict[str, Any]]:
    attempts = record.table.columns["attempts"][record.row]
    if not isinstance(attempts, list) or not all(isinstance(x, dict) for x in attempts):
        raise record.error("attempts", "a list of objects with start_time, end_time and detail")
    return attempts


def _gpus(record: Record, attempt: dict[str, Any]) -> int:
    """GPUs of one attempt, over all its machines."""
    total = 0
    detail = attempt.get("detail") or []
    for machine in detail if isinstance(detail, list) else [None]:
        gpus = machine.get("gpus") if isinstance(machine, dict) else None
        if not isinstance(gpus, list):
            raise record.error("attempts", "in each detail a list of machines with a list of gpus")
        total += len(gpus)
    if total > MAX_GPUS:
        raise record.error("attempts", f"at most {MAX_GPUS} GPUs")
    return total


def _time(record: Record, attempt: dict[str, Any], name: str) -> float | None:
    text = attempt.get(name)
    if text is None or text in ("", "None"):
        return None
    seconds = moment_s(text) if isinstance(text, str) else None
    if seconds is None:
        raise record.error("attempts", f"in each attempt a {name} as in 2017-10-07 01:12:09")
    return seconds
