"""Alibaba's openb pods of 2023, `openb_pod_list_*.csv` (Weng et al., ATC'23).

Source: https://github.com/alibaba/clusterdata, cluster-trace-gpu-v2023/README.md.
Columns: name, cpu_milli, memory_mib, num_gpu (0 to 8), gpu_milli (thousandths of each
GPU, below 1000 where pods share one), gpu_spec, qos, pod_phase, creation_time,
deletion_time and scheduled_time (seconds). No user, model or iterations.

Rules: a pod arrives at its creation and runs from scheduling to deletion, in
whatever phase it was seen last.
"""

from __future__ import annotations

from collections.abc import Iterator

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
from artist.trace.native.table import Table

COLUMNS = (
    "name",
    "num_gpu",
    "gpu_milli",
    "pod_phase",
    "creation_time",
    "deletion_time",
    "scheduled_time",
)

WHOLE_MILLI = 1000


def read(table: Table, rules: Rules) -> Iterator[Found]:
    """Jobs and reasons."""
    del rules
    return map(_job, records(table))


def _job(record: Record) -> Found:
    gpus = record.gpus("num_gpu")
    if not gpus:
        return CPU_ONLY
    milli = record.count("gpu_milli", 1, WHOLE_MILLI)
    if not record.has("scheduled_time"):
        return FAILED_FIRST if record.text("pod_phase") == "Failed" else NEVER_STARTED
    if not record.has("deletion_time"):
        return STILL_RUNNING
    start_s, end_s = record.seconds("scheduled_time"), record.seconds("deletion_time")
    if end_s < start_s:
        raise record.error("deletion_time", "a time after scheduled_time")
    return Foreign(
        row=record.row,
        id=record.text("name"),
        submit_s=record.seconds("creation_time"),
        gpus=gpus,
        run_s=end_s - start_s,
        shared=milli < WHOLE_MILLI,
    )
