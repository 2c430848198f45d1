"""Tab-separated traces of Gavel (Narayanan et al., OSDI'20) and Shockwave (Zheng et al., NSDI'23).

Source: https://github.com/stanford-futuredata/gavel, scheduler/traces and utils.py, in
three versions of 7, 9 and 10 columns; https://github.com/uw-mad-dash/shockwave,
scheduler/traces, with 12. No header. job_type is the model with its batch size,
total_steps counts the mini-batches of all GPUs together, scale_factor is the number of
GPUs (0 or 1 is one), arrival_time is in seconds. No ids (the line numbers serve) and
no users.

Gavel has no run time: it is total_steps over the speed of the job type on so many
V100s (`gavel_speeds`), or on the next smaller number of them times the ratio of GPUs;
types that Gavel never measured are dropped. Shockwave's duration is the run time
with the batch size the job starts with; its changes (`mode`) are not followed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from artist.trace.foreign.gavel_speeds import V100_STEPS_PER_S
from artist.trace.foreign.records import Foreign, Found, Record, records
from artist.trace.foreign.rules import Rules
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

SHOCKWAVE = (
    *_HEAD,
    "working_directory",
    *_STEPS,
    "scale_factor",
    "mode",
    "priority_weight",
    "slo",
    "duration",
    "arrival_time",
)

UNKNOWN_TYPE = "a job type that Gavel never measured"

_BATCH_SIZE = re.compile(r" \(batch size \d+\)$")


def fits(cells: list[str]) -> bool:
    """Whether a line with the right number of cells is one of these traces."""
    return bool(cells[0].strip())


def read(table: Table, rules: Rules) -> Iterator[Found]:
    """Jobs and reasons of a Gavel trace."""
    del rules
    for record in records(table):
        gpus = max(1, record.gpus("scale_factor"))
        speed = _steps_per_s(record.text("job_type"), gpus)
        steps = record.count("total_steps", 1)
        yield _job(record, gpus, steps / speed) if speed else UNKNOWN_TYPE


def read_shockwave(table: Table, rules: Rules) -> Iterator[Found]:
    """Jobs of a Shockwave trace."""
    del rules
    for record in records(table):
        yield _job(record, max(1, record.gpus("scale_factor")), record.seconds("duration"))


def _job(record: Record, gpus: int, run_s: float) -> Foreign:
    """The steps are shared by the GPUs, rounded up."""
    return Foreign(
        row=record.row,
        id=str(record.table.numbers[record.row]),
        submit_s=record.seconds("arrival_time"),
        gpus=gpus,
        run_s=run_s,
        iterations=-(-record.count("total_steps", 1) // gpus),
        model=_BATCH_SIZE.sub("", record.text("job_type")),
    )


def _steps_per_s(job_type: str, gpus: int) -> float:
    speeds = V100_STEPS_PER_S.get(job_type)
    if speeds is None:
        return 0.0
    measured = max(n for n in speeds if n <= gpus)
    return speeds[measured] * gpus / measured
