"""SenseTime Helios' `cluster_log.csv`, a Slurm log (Hu et al., SC'21).

Source: https://github.com/S-Lab-System-Group/HeliosData, README. Columns: job_id,
user, vc, gpu_num, cpu_num, node_num, state, submit_time, start_time, end_time
(local times), duration and queue (seconds). No model, no iterations. A job that
ran counts whatever became of it, for its GPUs were taken.
"""

from __future__ import annotations

from collections.abc import Iterator

from artist.trace.foreign.records import (
    CPU_ONLY,
    FAILED_FIRST,
    NEVER_STARTED,
    NO_ID,
    STILL_RUNNING,
    Foreign,
    Found,
    Record,
    records,
)
from artist.trace.foreign.rules import Rules
from artist.trace.native.table import Table

COLUMNS = ("job_id", "user", "gpu_num", "state", "submit_time", "start_time", "duration")


def read(table: Table, rules: Rules) -> Iterator[Found]:
    """Jobs and reasons; `duration` is the run time."""
    del rules
    return map(_job, records(table))


def _job(record: Record) -> Found:
    if not record.gpus("gpu_num"):
        return CPU_ONLY
    submit_s = record.moment("submit_time")
    if submit_s is None:
        raise record.error("submit_time", "a time as in 2020-06-09 18:41:01")
    if record.moment("start_time") is None:
        failed = record.text("state").upper() in ("FAILED", "NODE_FAIL", "TIMEOUT")
        return FAILED_FIRST if failed else NEVER_STARTED
    if not record.has("duration"):
        return STILL_RUNNING
    if not record.has("job_id"):
        return NO_ID
    return Foreign(
        row=record.row,
        id=record.text("job_id"),
        submit_s=submit_s,
        gpus=record.gpus("gpu_num"),
        run_s=record.seconds("duration"),
        user=record.text("user"),
    )
