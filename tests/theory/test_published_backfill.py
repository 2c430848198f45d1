"""Do `easy` and `conservative` start jobs when a published simulator does?

`pyss.csv` has the starts of pyss (commit 44a24235, run by Python 2.7.18 with -O) for two generated
logs of 400 jobs in the form of the Parallel Workloads Archive, on 128 and 100 processors. Times are
drawn so that events hardly share a second: pyss asks its scheduler once per event, artist once per
instant.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from support import cluster, job, run

from artist.policies.backfill.conservative import Conservative
from artist.policies.backfill.easy import Easy
from artist.policies.backfill.options import BackfillOptions
from artist.units import ticks

with (Path(__file__).parent / "pyss.csv").open(newline="") as file:
    ROWS = list(csv.DictReader(file))


@pytest.mark.parametrize("processors", ["128", "100"])
@pytest.mark.parametrize(
    ("policy", "published"), [(Easy, "easy_start_s"), (Conservative, "conservative_start_s")]
)
def test_every_start_is_that_of_pyss(
    policy: type[Easy] | type[Conservative], published: str, processors: str
) -> None:
    rows = [row for row in ROWS if row["log"] == processors]
    jobs = [
        job(
            row["job_id"],
            int(row["num_gpus"]),
            int(row["duration"]),
            arrival_s=float(row["submit_time"]),
            hints={"hint_time_limit_s": row["hint_time_limit_s"]},
        )
        for row in rows
    ]
    done = run(cluster([int(processors)]), jobs, policy(BackfillOptions(estimates="limit")))
    starts = {jobs[stay.handle].id: stay.start for stay in done.placements}
    assert starts == {row["job_id"]: ticks(float(row[published])) for row in rows}
    assert sum(float(row[published]) > float(row["submit_time"]) for row in rows) > 240
