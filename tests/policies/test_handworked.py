"""Traces worked out by hand: the files in `handworked/` give the start and finish of each job.

A job is a list: id, arrival in seconds, GPUs, iterations of one second, start, finish.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from support import EstimateByLevel, cluster, job

from artist.engine.rows import Rows
from artist.engine.simulator import Simulator
from artist.network.rates.isolated import AloneRates
from artist.run import open_policy
from artist.units import seconds

CASES = sorted((Path(__file__).parent / "handworked").glob("*.yaml"))


def run_case(case: dict) -> Rows:
    comm = case.get("comm", {})
    models = case.get("models", {})
    jobs = [
        job(name, gpus, iterations, arrival_s=float(arrival), model=models.get(name, "any"))
        for name, arrival, gpus, iterations, *_ in case["jobs"]
    ]
    tree = cluster(*case["cluster"])
    policy = open_policy(case["policy"], case.get("options", {}))
    by_level = EstimateByLevel(tree, comm.get("rack", 0.0), comm.get("network", 0.0))
    simulator = Simulator(tree, jobs, AloneRates(tree, by_level), lease=policy.lease, check=True)
    return simulator.run(policy)


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_starts_and_finishes_are_as_worked_out_by_hand(path: Path) -> None:
    case = yaml.safe_load(path.read_text())
    rows = {row.job.id: row for row in run_case(case).jobs}

    times = {name: (seconds(row.start), seconds(row.finish)) for name, row in rows.items()}
    assert times == {name: (start, finish) for name, _, _, _, start, finish in case["jobs"]}
    for count in ("preemptions", "migrations"):
        if count in case:
            assert {name: getattr(row, count) for name, row in rows.items()} == case[count]
