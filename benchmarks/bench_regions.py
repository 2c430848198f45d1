"""Times clusters of regions: reading their file, building their tree, and jobs with data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from artist.cluster.cluster_file import load_cluster
from artist.cluster.free_gpus import FreeGpus
from artist.config import Scenario
from artist.run import build_cluster, build_fabric, drive, prepare
from artist.trace.native.writer import write_csv
from artist.trace.synthetic.mast import data_file, mast_synth

CLUSTER = "mast-5-regions"
JOBS, GPUS, SEED = 10_000, 100_000, 1


def bench_cluster_file(measure: Callable[..., None]) -> None:
    """100,000 GPUs in 5 regions: from the file to the tree and the counts of free GPUs."""
    scenario = Scenario(cluster=CLUSTER)
    measure(lambda: FreeGpus(build_cluster(scenario, build_fabric(scenario))), rounds=5, items=GPUS)


def bench_mast_synth(measure: Callable[..., None]) -> None:
    """Jobs and partitions with the quantiles of MAST."""
    measure(lambda: mast_synth(JOBS, 1.0, GPUS, SEED), rounds=3, items=JOBS)


def bench_jobs_with_data(measure: Callable[..., None], tmp_path: Path) -> None:
    """Half a day of 100,000 GPUs under a policy that knows nothing of regions: 900 copies."""
    workload = mast_synth(JOBS, 1.0, GPUS, SEED)
    trace, data = tmp_path / "jobs.csv", tmp_path / "tables.csv"
    write_csv(workload.trace.jobs, trace)
    data.write_text(data_file(workload, load_cluster(CLUSTER)), encoding="utf-8")
    scenario = Scenario(
        cluster=CLUSTER, trace=str(trace), data=str(data), backend="none", policy="fifo-backfill"
    )

    def loop() -> Callable[[], object]:
        prepared = prepare(scenario)
        return lambda: drive(prepared)

    measure(prepare=loop, rounds=1, items=JOBS)
