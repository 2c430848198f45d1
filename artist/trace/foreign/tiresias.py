"""The Tiresias simulator's job CSV (Gu et al., NSDI'19).

Source: https://github.com/SymbioticLab/Tiresias, simulator/60_job.csv. Columns: job_id,
num_gpu, submit_time (s), iterations, model_name, duration (s), interval (s, to the next
job; not read). No user. A step takes the duration divided by the iterations.
"""

from __future__ import annotations

from artist.trace.foreign.rows import CPU_ONLY, ForeignJob, JobOrReason, TraceRow

COLUMNS = ("job_id", "num_gpu", "submit_time", "iterations", "model_name", "duration")


def job(row: TraceRow) -> JobOrReason:
    """The job in a row, or why the row is dropped."""
    gpus = row.gpus("num_gpu")
    if not gpus:
        return CPU_ONLY
    return ForeignJob(
        row=row.index,
        id=row.text("job_id"),
        submit_s=row.seconds("submit_time"),
        gpus=gpus,
        run_s=row.seconds("duration"),
        iterations=row.count("iterations", 1),
        model=row.text("model_name"),
    )
