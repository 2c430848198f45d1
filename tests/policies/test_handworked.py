"""Traces worked out by hand: the files in `handworked/` give the start and finish of each job.

A job is a list: id, arrival in seconds, GPUs, iterations of one second, start, finish.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from artist.cluster.placement_shape import Shape, depth
from artist.cluster.tree import nested
from artist.engine.rows import Rows
from artist.engine.simulator import Simulator
from artist.estimates.query import Estimate
from artist.network.rates.isolated import AloneRates
from artist.run import open_policy
from artist.units import seconds
from artist.workload.job import Job

CASES = sorted((Path(__file__).parent / "handworked").glob("*.yaml"))
COMPUTE_NS = 1_000_000


def run_case(case: dict) -> Rows:
    comm = {"machine": 0.0, "rack": 0.0, "network": 0.0, **case.get("comm", {})}

    def estimate(model: str, shape: Shape) -> Estimate:
        level = ("machine", "rack", "network")[depth(shape)]
        return Estimate(round(COMPUTE_NS * (1 + comm[level])), COMPUTE_NS, "hand")

    jobs = [
        Job(
            name,
            float(arrival),
            gpus,
            case.get("models", {}).get(name, "any"),
            iterations,
            1.0,
            **case.get("job_options", {}),
        )
        for name, arrival, gpus, iterations, *_ in case["jobs"]
    ]
    tree = nested(("machine", "rack", "network"), case["cluster"])
    policy = open_policy(case["policy"], case.get("options", {}))
    simulator = Simulator(tree, jobs, AloneRates(tree, estimate), lease=policy.lease, check=True)
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
