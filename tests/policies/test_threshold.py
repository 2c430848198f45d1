"""Do `srsf-threshold` and `las-threshold` start what is worth it, in their order? Worked by hand.

Three racks of two machines with eight GPUs. A job of 24 GPUs takes a rack and a machine of another
one, so two such jobs meet on the uplink of rack 1 wherever they lie. A table says what they lose.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from network.runs import job, network, rates
from support import finishes, intervals, make_policy, on, simulator, starts

from artist.engine.rows import Rows
from artist.workload.job import Job

NAMES = ("srsf-threshold", "las-threshold")


def run(name: str, jobs: list[Job], slowdown: float, folder: Path) -> Rows:
    table = folder / "pairs.csv"
    table.write_text(f"model,beside,slowdown\nvgg11,vgg11,{slowdown}\n")
    on_network = network(racks=3)
    policy = make_policy(name)
    rate = rates(f"table:{table}", on_network)
    return simulator(on_network.tree, jobs, rate, lease_s=policy.lease and policy.lease / 1e9).run(
        policy
    )


# A job keeps 1 / slowdown of its speed: .625, .606, .594 and .5.
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("slowdown", "waits"), [(1.6, False), (1.65, False), (1.685, True), (2.0, True)]
)
def test_a_job_waits_where_it_would_keep_less_than_six_tenths(
    name: str, slowdown: float, waits: bool, tmp_path: Path
) -> None:
    rows = run(name, [job("a", gpus=24), job("b", gpus=24)], slowdown, tmp_path)
    assert starts(rows) == {"a": 0.0, "b": finishes(rows)["a"] if waits else 0.0}


def test_the_smallest_area_or_the_least_service_goes_first(tmp_path: Path) -> None:
    # Both wait for `first`. `long` came earlier, `short` has less to do. Neither has been served,
    # so LAS goes by arrival.
    jobs = [
        job("first", gpus=24, iterations=100),
        job("long", gpus=24, iterations=300, arrival_s=1.0),
        job("short", gpus=24, iterations=200, arrival_s=2.0),
    ]
    first = {}
    for name in NAMES:
        started = starts(run(name, jobs, 2.0, tmp_path))
        first[name] = min(("long", "short"), key=lambda one: started[one])
    assert first == {"srsf-threshold": "short", "las-threshold": "long"}


def test_idle_links_come_first(tmp_path: Path) -> None:
    # `a` leaves 12 GPUs in rack 1, four of them in a machine that it sends out of. They are the
    # closest fit for `b`, which goes to the idle rack 2.
    jobs = [job("a", gpus=20), job("b", gpus=12, iterations=9000)]
    placements = {
        name: intervals(run(name, jobs, 1.1, tmp_path), 1)[0].placement
        for name in ("srsf", "las", *NAMES)
    }
    packed, idle = on({2: 4, 3: 8}), on({4: 8, 5: 4})
    assert placements == {**dict.fromkeys(("srsf", "las"), packed), **dict.fromkeys(NAMES, idle)}
