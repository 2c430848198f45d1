"""Alibaba PAI of 2020, `pai_task_table.csv` (Weng et al., NSDI'22).

Source: https://github.com/alibaba/clusterdata, cluster-trace-gpu-v2020/README.md. One
row a task (`ps`, `worker`, ...) of a job: job_name, task_name, inst_num, status,
start_time, end_time (s), plan_cpu, plan_mem, plan_gpu (per cent of a GPU for each
instance), gpu_type. The published file has no header. `pai_job_table.csv` (job_name,
inst_id, user, status, start_time, end_time), if given, adds users and submission times.

Rules: a job is its tasks that ask for GPUs, as one gang of inst_num x plan_gpu / 100;
it runs from the first start to the last end. Without the job table it arrives when its
first task starts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from artist.errors import TraceError
from artist.trace.foreign.records import (
    CPU_ONLY,
    FAILED_FIRST,
    NEVER_STARTED,
    STILL_RUNNING,
    Foreign,
    Found,
    Record,
    records,
)
from artist.trace.foreign.rules import Rules
from artist.trace.native.cells import read_csv
from artist.trace.native.file_bytes import read_data
from artist.trace.native.table import MAX_GPUS, Table

COLUMNS = (
    "job_name",
    "task_name",
    "inst_num",
    "status",
    "start_time",
    "end_time",
    "plan_cpu",
    "plan_mem",
    "plan_gpu",
    "gpu_type",
)
REQUIRED = ("job_name", "inst_num", "status", "start_time", "end_time", "plan_gpu")
JOB_COLUMNS = ("job_name", "inst_id", "user", "status", "start_time", "end_time")

_STATES = frozenset({"Terminated", "Failed", "Running", "Waiting", "Interrupted"})


def fits(cells: list[str]) -> bool:
    """Whether a line of ten cells is a task."""
    return cells[COLUMNS.index("status")] in _STATES


def read(table: Table, rules: Rules) -> Iterator[Found]:
    """Jobs and reasons; a job without GPUs counts once."""
    known = _job_table(rules.job_table) if rules.job_table else {}
    tasks: dict[str, list[Record]] = {}
    for record in records(table):
        tasks.setdefault(record.text("job_name"), []).append(record)
    for name, found in tasks.items():
        yield _job(name, found, known)


def _job(name: str, tasks: list[Record], known: dict[str, tuple[str, float]]) -> Found:
    demands = [(task, *_gpus(task)) for task in tasks]
    on_gpus = [task for task, gpus, _ in demands if gpus]
    if not on_gpus:
        return CPU_ONLY
    if not all(task.has("start_time") for task in on_gpus):
        failed = any(task.text("status") == "Failed" for task in on_gpus)
        return FAILED_FIRST if failed else NEVER_STARTED
    if not all(task.has("end_time") for task in on_gpus):
        return STILL_RUNNING
    start_s = min(task.seconds("start_time") for task in on_gpus)
    end_s = max(task.seconds("end_time") for task in on_gpus)
    gpus = sum(gpus for _, gpus, _ in demands)
    if gpus > MAX_GPUS:
        raise on_gpus[0].error("plan_gpu", f"a job of at most {MAX_GPUS} GPUs")
    if end_s < start_s:
        raise on_gpus[0].error("end_time", "a time after start_time")
    user, submit_s = known.get(name, ("", start_s))
    shared = any(shared for _, _, shared in demands)
    return Foreign(on_gpus[0].row, name, submit_s, gpus, end_s - start_s, user=user, shared=shared)


def _gpus(task: Record) -> tuple[int, bool]:
    """GPUs of a task, each instance's rounded up, and whether that made a difference."""
    if not task.has("plan_gpu"):
        return 0, False
    what = f"per cent of a GPU up to {100 * MAX_GPUS}"
    each = task.number("plan_gpu", 0, 100 * MAX_GPUS, what) / 100
    instances = task.count("inst_num", 0, MAX_GPUS) if task.has("inst_num") else 1
    return instances * math.ceil(each), instances > 0 and each != math.floor(each)


def _job_table(path: Path) -> dict[str, tuple[str, float]]:
    """User and submission time (s) by job."""
    data = read_data(path)
    named = data.startswith(b"job_name")
    table = read_csv(path, data, None if named else JOB_COLUMNS)
    for column in ("job_name", "user", "start_time"):
        if column not in table.columns:
            raise TraceError(
                f"{path}:1: column {column!r} of PAI's job table is missing; "
                f"give {', '.join(JOB_COLUMNS)}"
            )
    return {
        record.text("job_name"): (record.text("user"), record.seconds("start_time"))
        for record in records(table)
        if record.has("start_time")
    }
