"""Do job files and recorded runs tell the pool of a job?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from artist.errors import TraceError
from validation.original.files import RecordedTrace, read_run, read_trace
from validation.original.pools import read_totals, with_pools
from validation.original.scheduler import POOL

TRACE = """job_id,arrival_s,gpus,model,iterations,compute_s,user
1,0.0,2,BERT,3000,0.001,u
2,0.0,2,BERT,3000,0.001,u
"""


def job_file(folder: Path, total: int, seconds: float = 0.001) -> Path:
    row = {
        "job_id": "1",
        "max_parallelism": "2",
        "time_per_iteration": str(seconds),
        "total_iterations": str(total),
    }
    (folder / "jobs.json").write_text(json.dumps([row]))
    return folder / "jobs.json"


def trace(folder: Path) -> RecordedTrace:
    (folder / "trace.csv").write_text(TRACE)
    return read_trace(folder / "trace.csv", "mine")


def pools(pooled: RecordedTrace) -> list[object]:
    return [job.hints.get(POOL) for job in pooled.jobs]


@pytest.mark.parametrize(
    ("total", "pool"),
    [
        (6000, 6000),  # three batches of 1000 on 2 GPUs
        (4001, 4001),
        (4000, None),  # two batches: not the work that the trace has
        (6001, None),
    ],
)
def test_a_total_counts_if_it_fits_the_batches_of_the_trace(tmp_path, total, pool) -> None:
    totals = read_totals([job_file(tmp_path, total)])
    assert pools(with_pools(trace(tmp_path), totals, [], 1000)) == [pool, None]


def test_a_total_of_another_job_does_not_count(tmp_path: Path) -> None:
    totals = read_totals([job_file(tmp_path, 6000, seconds=0.002)])
    assert pools(with_pools(trace(tmp_path), totals, [], 1000)) == [None, None]


def test_the_first_expiry_reveals_the_pool(tmp_path: Path) -> None:
    path = tmp_path / "fix_Tiresias_1r_mine.csv"
    path.write_text(
        "event,time_s,job_id,model,gpus,priority,waited_s,speed,gpus_list\n"
        "ALLOC,0.0,2,BERT,2,-0.0,0.0,1.0,0.0.0.0 0.0.0.1\n"
        "EXPIRE,1.0,2,BERT,2,,,2500,\nEXPIRE,2.0,2,BERT,2,,,500,\n"
    )
    plain = trace(tmp_path)
    # 2500 are left of whole batches of 2000, at most 6000: one was done.
    pooled = with_pools(plain, {}, [(read_run(path), plain)], 1000)
    assert pools(pooled) == [None, 4500]


def test_a_file_that_is_not_a_job_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "jobs.json").write_text("[1]")
    with pytest.raises(TraceError, match=r"jobs\.json"):
        read_totals([tmp_path / "jobs.json"])
