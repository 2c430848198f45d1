"""The Standard Workload Format, version 2.2, of the Parallel Workloads Archive.

Source: https://www.cs.huji.ac.il/labs/parallel/workload/swf.html. A line has 18 numbers,
separated by white space; -1 means unknown. Lines that begin with `;` are comments.

Rules: a processor is a GPU. The demand is the number of requested processors if it is known, else
the number of allocated ones. The number of the executable gives the model its name
(`application 7`), and users are numbers. Lines about parts of a job (status 2, 3 and 4) are
dropped, because the whole job has a line of its own. `native/writer.py` writes this format.
"""

from __future__ import annotations

from artist.trace.foreign.rows import CPU_ONLY, ForeignJob, JobOrReason, TraceRow, never_ran
from artist.trace.native.table import MAX_GPUS
from artist.units import MAX_TIME_S

COLUMNS = (
    "job_number", "submit_time", "wait_time", "run_time", "allocated_processors", "cpu_time",
    "used_memory", "requested_processors", "requested_time", "requested_memory", "status", "user",
    "group", "executable", "queue", "partition", "preceding_job", "think_time",
)  # fmt: skip

PART_OF_A_JOB = "part of a job that has its own line"

_FAILED, _PARTS = 0, (2, 3, 4)


def fits(cells: list[str]) -> bool:
    """Whether a line of 18 cells can be a job: every cell begins like a number."""
    return all(cell.lstrip("+-")[:1].isdigit() for cell in cells)


def job(row: TraceRow) -> JobOrReason:
    """The job in a row, or why the row is dropped."""
    # -1 stands for an unknown number in every column.
    status = row.count("status", -1, 9)
    gpus = row.count("requested_processors", -1, MAX_GPUS)
    if gpus < 1:
        gpus = row.count("allocated_processors", -1, MAX_GPUS)
    run_s = row.number("run_time", -1, MAX_TIME_S, "seconds, or -1")
    if status in _PARTS:
        return PART_OF_A_JOB
    if run_s < 0:
        return never_ran(failed=status == _FAILED)
    if gpus < 1:
        return CPU_ONLY
    executable, user = row.count("executable", -1), row.count("user", -1)
    return ForeignJob(
        row=row.index,
        id=str(row.count("job_number")),
        submit_s=row.seconds("submit_time"),
        gpus=gpus,
        run_s=run_s,
        model=f"application {executable}" if executable >= 0 else "",
        user=str(user) if user >= 0 else "",
    )
