"""Tab-separated traces of Gavel (Narayanan et al., OSDI'20).

Source: https://github.com/stanford-futuredata/gavel, scheduler/traces and utils.py. There are
three versions, with 7, 9 and 10 columns and no header. Columns that are read:

- job_type: the model with its batch size;
- total_steps: mini-batches of all GPUs together;
- scale_factor: number of GPUs (0 and 1 both mean one);
- arrival_time, in seconds.

There are no ids, so line numbers serve as ids, and no users.

Rule for the run time, which the format lacks: total_steps over the speed of the job type on so
many V100s (`gavel_speeds.py`). If that number of V100s was not measured, the speed is the one on
the next smaller measured number, times the ratio of the two numbers. Job types that Gavel never
measured are dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from artist.trace.foreign.fill_options import Rules
from artist.trace.foreign.gavel_speeds import V100_STEPS_PER_S
from artist.trace.foreign.rows import ForeignJob, JobOrReason, Row, rows
from artist.trace.native.table import Table

REQUIRED = ("job_type", "total_steps", "scale_factor", "arrival_time", "num_steps_arg")

_HEAD = ("job_type", "command")
_STEPS = ("num_steps_arg", "needs_data_dir", "total_steps")
_TAIL = ("scale_factor", "priority_weight", "slo", "arrival_time")

LAYOUTS = (
    (*_HEAD, *_STEPS, "arrival_time", "scale_factor"),
    (*_HEAD, *_STEPS, *_TAIL),
    (*_HEAD, "working_directory", *_STEPS, *_TAIL),
)

UNKNOWN_TYPE = "a job type that Gavel never measured"

_BATCH_SIZE = re.compile(r" \(batch size \d+\)$")


def fits(cells: list[str]) -> bool:
    """Whether a line with the right number of cells can be a job: it has a job type."""
    return bool(cells[0].strip())


def read(table: Table, rules: Rules) -> Iterator[JobOrReason]:
    """Jobs, and reasons why rows are dropped."""
    del rules
    for row in rows(table):
        gpus = demand(row)
        speed = _steps_per_s(row.text("job_type"), gpus)
        steps = row.count("total_steps", 1)
        yield job(row, gpus, steps / speed) if speed else UNKNOWN_TYPE


def demand(row: Row) -> int:
    """Number of GPUs of a job."""
    return max(1, row.gpus("scale_factor"))


def job(row: Row, gpus: int, run_s: float) -> ForeignJob:
    """The job in a row. Each GPU runs its share of the steps, rounded up."""
    return ForeignJob(
        row=row.index,
        id=str(row.table.numbers[row.index]),
        submit_s=row.seconds("arrival_time"),
        gpus=gpus,
        run_s=run_s,
        iterations=-(-row.count("total_steps", 1) // gpus),
        model=_BATCH_SIZE.sub("", row.text("job_type")),
    )


def _steps_per_s(job_type: str, gpus: int) -> float:
    """Speed of a job type on so many V100s, all GPUs together; 0 if it was never measured."""
    speeds = V100_STEPS_PER_S.get(job_type)
    if speeds is None:
        return 0.0
    measured = max(n for n in speeds if n <= gpus)
    return speeds[measured] * gpus / measured
