"""Alibaba PAI of 2020, `pai_task_table.csv` (Weng et al., NSDI'22).

Source: https://github.com/alibaba/clusterdata, cluster-trace-gpu-v2020/README.md. A row
is one task (`ps`, `worker`, ...) of a job: job_name, task_name, inst_num, status,
start_time, end_time (s), plan_cpu, plan_mem, plan_gpu (per cent of a GPU for each
instance), gpu_type. Of each instance, plan_cpu is per cent of a core and plan_mem is in GB, which
count as GiB. The published file has no header.

A second file, `pai_job_table.csv`, adds users and submission times if it is given. Its columns
are job_name, inst_id, user, status, start_time and end_time.

Rules: the tasks of a job that ask for GPUs form one gang, of inst_num x plan_gpu / 100 GPUs
each. The job runs from the first start to the last end of these tasks. Without the job table, it
arrives when the first of them starts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from artist.errors import TraceError
from artist.trace.foreign.rows import (
    CPU_ONLY,
    STILL_RUNNING,
    ForeignJob,
    JobOrReason,
    TraceRow,
    never_ran,
    rows,
)
from artist.trace.native.choices import Rules
from artist.trace.native.read_table import read_csv, read_data
from artist.trace.native.table import MAX_GPUS, Table
from artist.units import CORE_MILLI, GIB_MIB, GPU_MILLI, MOST_CORES, MOST_GIB

COLUMNS = (
    "job_name", "task_name", "inst_num", "status", "start_time", "end_time", "plan_cpu",
    "plan_mem", "plan_gpu", "gpu_type",
)  # fmt: skip
REQUIRED = ("job_name", "inst_num", "status", "start_time", "end_time", "plan_gpu")
JOB_COLUMNS = ("job_name", "inst_id", "user", "status", "start_time", "end_time")

_STATES = frozenset({"Terminated", "Failed", "Running", "Waiting", "Interrupted"})


def fits(cells: list[str]) -> bool:
    """Whether a line of ten cells is a task."""
    return cells[COLUMNS.index("status")] in _STATES


def read(table: Table, rules: Rules) -> Iterator[JobOrReason]:
    """Jobs, and reasons why jobs are dropped. A job with several tasks counts once."""
    submissions = _job_table(rules.job_table) if rules.job_table else {}
    tasks_of: dict[str, list[TraceRow]] = {}
    for row in rows(table):
        tasks_of.setdefault(row.text("job_name"), []).append(row)
    for name, tasks in tasks_of.items():
        yield _job(name, tasks, submissions)


def _job(
    name: str, tasks: list[TraceRow], submissions: dict[str, tuple[str, float]]
) -> JobOrReason:
    """The job made of these tasks. `submissions` are the user and arrival (s) of known jobs."""
    demands = [(task, *_gpus(task)) for task in tasks]
    on_gpus = [task for task, gpus, _ in demands if gpus]
    if not on_gpus:
        return CPU_ONLY
    if not all(task.has("start_time") for task in on_gpus):
        return never_ran(failed=any(task.text("status") == "Failed" for task in on_gpus))
    if not all(task.has("end_time") for task in on_gpus):
        return STILL_RUNNING
    start_s = min(task.seconds("start_time") for task in on_gpus)
    end_s = max(task.seconds("end_time") for task in on_gpus)
    gpus = sum(gpus for _, gpus, _ in demands)
    if gpus > MAX_GPUS:
        raise on_gpus[0].error("plan_gpu", f"a job of at most {MAX_GPUS} GPUs")
    if end_s < start_s:
        raise on_gpus[0].error("end_time", "a time after start_time")
    user, submit_s = submissions.get(name, ("", start_s))
    share = on_gpus[0].number("plan_gpu", 0, 100 * MAX_GPUS, "percent of a GPU")
    return ForeignJob(
        row=on_gpus[0].index,
        id=name,
        submit_s=submit_s,
        gpus=gpus,
        run_s=end_s - start_s,
        user=user,
        shared=any(shared for _, _, shared in demands),
        gpu_milli=math.ceil(round(share * 10, 6)) if gpus == 1 else GPU_MILLI,
        cpu_milli=sum(_of_instances(x, "plan_cpu", CORE_MILLI / 100, MOST_CORES) for x in on_gpus),
        memory_mib=sum(_of_instances(x, "plan_mem", GIB_MIB, MOST_GIB) for x in on_gpus),
    )


def _gpus(task: TraceRow) -> tuple[int, bool]:
    """GPUs of a task, and whether its instances share GPUs.

    The demand of each instance is rounded up to whole GPUs.
    """
    if not task.has("plan_gpu"):
        return 0, False
    expected = f"percent of a GPU up to {100 * MAX_GPUS}"
    each = task.number("plan_gpu", 0, 100 * MAX_GPUS, expected) / 100
    instances = task.count("inst_num", 0, MAX_GPUS) if task.has("inst_num") else 1
    return instances * math.ceil(each), instances > 0 and each != math.floor(each)


def _of_instances(task: TraceRow, name: str, in_one: float, most: int) -> int:
    """What all instances of a task plan to use, in whole parts."""
    instances = task.count("inst_num", 0, MAX_GPUS) if task.has("inst_num") else 1
    return instances * task.parts(name, in_one, most)


def _job_table(path: Path) -> dict[str, tuple[str, float]]:
    """User and submission time (s) of each job in PAI's job table."""
    data = read_data(path)
    has_header = data.startswith(b"job_name")
    table = read_csv(path, data, None if has_header else JOB_COLUMNS)
    for column in ("job_name", "user", "start_time"):
        if column not in table.columns:
            raise TraceError(
                f"{path}:1: column {column!r} of PAI's job table is missing; "
                f"give {', '.join(JOB_COLUMNS)}"
            )
    return {
        row.text("job_name"): (row.text("user"), row.seconds("start_time"))
        for row in rows(table)
        if row.has("start_time")
    }
