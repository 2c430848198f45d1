"""The Standard Workload Format, version 2.2, of the Parallel Workloads Archive.

Source: https://www.cs.huji.ac.il/labs/parallel/workload/swf.html. Lines of 18 numbers
apart by white space, -1 where unknown; lines that begin with `;` are comments.

Rules: a processor is a GPU (the requested number, else the allocated one); the
executable's number is the model's name (`application 7`); users are numbers. Lines
about parts of a job (status 2, 3 and 4) are dropped, for the job has a line of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from artist.trace.foreign.records import (
    CPU_ONLY,
    FAILED_FIRST,
    NEVER_STARTED,
    Foreign,
    Found,
    Record,
    records,
)
from artist.trace.foreign.rules import Rules
from artist.trace.native.table import MAX_COUNT, MAX_GPUS, Table
from artist.units import MAX_TIME_S
from artist.workload.job import Job

COLUMNS = (
    "job_number",
    "submit_time",
    "wait_time",
    "run_time",
    "allocated_processors",
    "cpu_time",
    "used_memory",
    "requested_processors",
    "requested_time",
    "requested_memory",
    "status",
    "user",
    "group",
    "executable",
    "queue",
    "partition",
    "preceding_job",
    "think_time",
)

PART_OF_A_JOB = "part of a job that has its own line"

_FAILED, _COMPLETED, _PARTS = 0, 1, (2, 3, 4)


def fits(cells: list[str]) -> bool:
    """Whether a line of 18 cells is a job."""
    return all(cell.lstrip("+-")[:1].isdigit() for cell in cells)


def read(table: Table, rules: Rules) -> Iterator[Found]:
    """Jobs and reasons."""
    del rules
    return map(_job, records(table))


def _job(record: Record) -> Found:
    status = _whole(record, "status", 9)
    gpus = _whole(record, "requested_processors", MAX_GPUS)
    if gpus < 1:
        gpus = _whole(record, "allocated_processors", MAX_GPUS)
    run_s = record.number("run_time", -1, MAX_TIME_S, "seconds, or -1")
    if status in _PARTS:
        return PART_OF_A_JOB
    if run_s < 0:
        return FAILED_FIRST if status == _FAILED else NEVER_STARTED
    if gpus < 1:
        return CPU_ONLY
    executable = _whole(record, "executable", MAX_COUNT)
    user = _whole(record, "user", MAX_COUNT)
    return Foreign(
        row=record.row,
        id=str(record.count("job_number")),
        submit_s=record.seconds("submit_time"),
        gpus=gpus,
        run_s=run_s,
        model=f"application {executable}" if executable >= 0 else "",
        user=str(user) if user >= 0 else "",
    )


def _whole(record: Record, name: str, high: int) -> int:
    return record.count(name, -1, high)


def swf_lines(jobs: Iterable[Job]) -> Iterator[str]:
    """Jobs as lines of the format, numbered from 1. Run times are iterations x compute time."""
    yield "; Version: 2.2"
    yield "; Note: written by artist; a processor is a GPU, wait times are unknown"
    users: dict[str, int] = {}
    models: dict[str, int] = {}
    for number, job in enumerate(jobs, start=1):
        user = users.setdefault(job.user, len(users) + 1) if job.user else -1
        model = models.setdefault(job.model, len(models) + 1)
        yield (
            f"{number} {job.arrival_s!r} -1 {job.ideal_s!r} {job.gpus} -1 -1 {job.gpus} -1 -1 "
            f"{_COMPLETED} {user} -1 {model} -1 -1 -1 -1"
        )
