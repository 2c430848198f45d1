"""Are the weeks of the loop study what its page says of them?"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from studies.loop.study import week


@pytest.fixture(scope="module")
def world() -> week.World:
    return week.world(0)


def jobs(world: week.World, number: int, folder: Path) -> list[dict[str, str]]:
    week.write_week(world, number, folder / "week.csv")
    with (folder / "week.csv").open() as stream:
        return list(csv.DictReader(stream))


def test_30_percent_of_the_runs_recur(world: week.World, tmp_path: Path) -> None:
    recurs = [job["job_id"].startswith("job") for job in jobs(world, 1, tmp_path)]
    assert np.mean(recurs) == pytest.approx(0.3, abs=0.1)  # long runs are split


def test_jobs_want_so_many_gpus(tmp_path: Path) -> None:
    loads = []
    for seed in range(6):
        of = week.world(seed)
        wanted_s = sum(
            int(job["gpus"]) * int(job["iterations"]) * float(job["compute_s"])
            for job in jobs(of, 1, tmp_path)
        )
        loads.append(wanted_s / (of.gpus * week.WEEK_H * week.HOUR_S))
    assert np.mean(loads) == pytest.approx(week.LOAD, rel=0.05)


def test_recurring_jobs_stay_and_others_change(world: week.World, tmp_path: Path) -> None:
    names = [{job["job_id"].split("@")[0] for job in jobs(world, x, tmp_path)} for x in (1, 2)]
    common = names[0] & names[1]
    assert len(common) == len(world.recurring)
    assert all(name.startswith("job") for name in common)


def test_the_first_plan_knows_the_hours_of_all_but_only_jobs_that_recur(world: week.World) -> None:
    known, truth = week.known(world)["demand"], world.truth["demand"]
    assert sum(known["gpu_h"]) == pytest.approx(float(np.sum(truth["gpu_h"])))
    with_gpus = [job for job, kind in zip(known["job"], known["kind"], strict=True) if kind]
    assert with_gpus == [truth["job"][row] for row in world.recurring.tolist()]
