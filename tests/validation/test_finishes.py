"""Are results per job compared correctly, and are ours those of the original simulator?"""

from __future__ import annotations

from pathlib import Path

import pytest

from artist.errors import TraceError
from validation.original.files import read_trace
from validation.original.finishes import compare_jobs, jobs_trace, read_jobs
from validation.original.pools import read_totals, with_pools
from validation.original.runs import Latencies, workers
from validation.original.schemes import GRANULARITY

TRACE = """job_id,arrival_s,gpus,model,iterations,compute_s,user
1,0.0,1,BERT,1000,0.001,u
2,0.0,1,BERT,2000,0.001,u
"""
GOLDEN = (
    "source,model,compute_scale,topologies,dim_types,units,bw_GBps,latency_ns,"
    "total_comp_us,exposed_comm_us\n"
)


def compared(folder: Path, rows: str) -> dict:
    (folder / "trace.csv").write_text(TRACE)
    (folder / "golden.csv").write_text(GOLDEN)
    (folder / "Tiresias_1racks_mine.csv").write_text(f"job_id,arrival,start,end\n{rows}")
    trace = read_trace(folder / "trace.csv", "mine")
    recorded = read_jobs(folder / "Tiresias_1racks_mine.csv")
    runs = [(recorded, jobs_trace(recorded, [trace]))]
    with workers(1, {"mine": trace}, Latencies(folder / "golden.csv", folder)) as pool:
        (row,) = compare_jobs(pool, runs)
    return row


def test_a_job_agrees_if_it_starts_and_finishes_when_it_did(tmp_path: Path) -> None:
    assert compared(tmp_path, "1,0,0,1\n2,0,0,2\n")["agree"] == 2
    row = compared(tmp_path, "1,0,0,1.5\n2,0,0,2\n")
    assert (row["jobs"], row["agree"], row["largest_difference_s"]) == (2, 1, 0.5)
    assert compared(tmp_path, "1,0,0.25,1\n2,0,0,2\n")["largest_difference_s"] == 0.25


def test_files_that_fit_nothing_are_errors(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="none of the traces"):
        compared(tmp_path, "1,5,0,1\n")
    with pytest.raises(TraceError, match=r"mine\.csv:2"):
        compared(tmp_path, "1,0,soon,1\n")
    with pytest.raises(TraceError, match="name like"):
        read_jobs(tmp_path / "jobs.csv")


@pytest.mark.slow
def test_every_job_of_every_recorded_run_starts_and_finishes_when_it_did(
    recorded: Path, workloads: Path, job_files: list[Path]
) -> None:
    trace = read_trace(recorded / "trace_batch_effective.csv", "batch")
    trace = with_pools(trace, read_totals(job_files), [], GRANULARITY)
    runs = [read_jobs(path) for path in sorted((recorded / "jobs").glob("*.csv"))]
    with workers(1, {"batch": trace}, Latencies(recorded / "golden_astra1.csv", workloads)) as pool:
        rows = compare_jobs(pool, [(each, trace) for each in runs])
    assert len(rows) == 10
    for row in rows:
        assert row["agree"] == row["jobs"] == 500, row
