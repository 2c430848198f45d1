"""Alibaba's openb pods of 2023, `openb_pod_list_*.csv` (Weng et al., ATC'23).

Source: https://github.com/alibaba/clusterdata, cluster-trace-gpu-v2023/README.md.
Columns: name, cpu_milli, memory_mib, num_gpu (0 to 8), gpu_milli (thousandths of each
GPU, below 1000 where pods share a GPU), gpu_spec, qos, pod_phase, creation_time,
deletion_time and scheduled_time (seconds). No user, model or iterations.

Rules: a pod arrives when it is created. It runs from its scheduling to its deletion, whatever
its last recorded phase.
"""

from __future__ import annotations

from artist.trace.foreign.rows import (
    CPU_ONLY,
    STILL_RUNNING,
    ForeignJob,
    JobOrReason,
    TraceRow,
    never_ran,
)
from artist.units import CORE_MILLI, GIB_MIB, GPU_MILLI, MOST_CORES, MOST_GIB

COLUMNS = (
    "name", "num_gpu", "gpu_milli", "pod_phase", "creation_time", "deletion_time",
    "scheduled_time",
)  # fmt: skip


def job(row: TraceRow) -> JobOrReason:
    """The job in a row, or why the row is dropped."""
    gpus = row.gpus("num_gpu")
    if not gpus:
        return CPU_ONLY
    milli = row.count("gpu_milli", 1, GPU_MILLI)
    if not row.has("scheduled_time"):
        return never_ran(failed=row.text("pod_phase") == "Failed")
    if not row.has("deletion_time"):
        return STILL_RUNNING
    start_s, end_s = row.seconds("scheduled_time"), row.seconds("deletion_time")
    if end_s < start_s:
        raise row.error("deletion_time", "a time after scheduled_time")
    return ForeignJob(
        row=row.index,
        id=row.text("name"),
        submit_s=row.seconds("creation_time"),
        gpus=gpus,
        run_s=end_s - start_s,
        shared=milli < GPU_MILLI,
        gpu_milli=milli if gpus == 1 else GPU_MILLI,
        cpu_milli=row.parts("cpu_milli", 1, CORE_MILLI * MOST_CORES),
        memory_mib=row.parts("memory_mib", 1, GIB_MIB * MOST_GIB),
    )
