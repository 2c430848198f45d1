"""SenseTime Helios' `cluster_log.csv`, a Slurm log (Hu et al., SC'21).

Source: https://github.com/S-Lab-System-Group/HeliosData, README. Columns: job_id,
user, vc, gpu_num, cpu_num, node_num, state, submit_time, start_time, end_time
(local times), duration and queue (seconds). No model, no iterations.

Rule: a job that ran counts, whatever its final state, because it occupied its GPUs.
"""

from __future__ import annotations

from artist.trace.foreign.rows import (
    CPU_ONLY,
    NO_ID,
    STILL_RUNNING,
    ForeignJob,
    JobOrReason,
    TraceRow,
    never_ran,
)

COLUMNS = ("job_id", "user", "gpu_num", "state", "submit_time", "start_time", "duration")


def job(row: TraceRow) -> JobOrReason:
    """The job in a row, with `duration` as its run time; or why the row is dropped."""
    if not row.gpus("gpu_num"):
        return CPU_ONLY
    submit_s = row.moment("submit_time")
    if not row.has("start_time"):
        return never_ran(failed=row.text("state").upper() in ("FAILED", "NODE_FAIL", "TIMEOUT"))
    row.moment("start_time")  # refuses one that is not a time
    if not row.has("duration"):
        return STILL_RUNNING
    if not row.has("job_id"):
        return NO_ID
    return ForeignJob(
        row=row.index,
        id=row.text("job_id"),
        submit_s=submit_s,
        gpus=row.gpus("gpu_num"),
        run_s=row.seconds("duration"),
        user=row.text("user"),
    )
