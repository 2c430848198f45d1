"""The Tiresias simulator's job CSV (Gu et al., NSDI'19).

Source: https://github.com/SymbioticLab/Tiresias, simulator/60_job.csv. Columns: job_id,
num_gpu, submit_time (s), iterations, model_name, duration (s), interval (s, to the next
job; not read). No user. The duration is shared by the iterations.
"""

from __future__ import annotations

from collections.abc import Iterator

from artist.trace.foreign.records import CPU_ONLY, Foreign, Found, Record, records
from artist.trace.foreign.rules import Rules
from artist.trace.native.table import Table

COLUMNS = ("job_id", "num_gpu", "submit_time", "iterations", "model_name", "duration")


def read(table: Table, rules: Rules) -> Iterator[Found]:
    """Jobs and reasons."""
    del rules
    return map(_job, records(table))


def _job(record: Record) -> Found:
    gpus = record.gpus("num_gpu")
    if not gpus:
        return CPU_ONLY
    return Foreign(
        row=record.row,
        id=record.text("job_id"),
        submit_s=record.seconds("submit_time"),
        gpus=gpus,
        run_s=record.seconds("duration"),
        iterations=record.count("iterations", 1),
        model=record.text("model_name"),
    )
