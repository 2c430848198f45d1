"""Does random placement take any free GPUs, as many as the host says, and repeat by seed?"""

from __future__ import annotations

import pytest

from artist.cluster.tree import nested
from artist.config import Scenario
from artist.engine.simulator import Simulator
from artist.run import open_policy, simulate
from artist.testing import LevelRates, check_policy
from artist.workload.job import Job

HOSTS = ["las", "themis", "dally", "gandiva", "srtf", "easy", "conservative"]


@pytest.mark.slow
@pytest.mark.parametrize("host", HOSTS)
def test_random_placement_keeps_the_contract(host: str) -> None:
    check_policy(lambda: open_policy(f"random-placement({host})", {}))


def test_every_gpu_is_as_likely() -> None:
    # A machine of eight and eight of one: half of the jobs with one GPU lie in the large one.
    tree = nested(("machine", "rack", "network"), [[8], [1] * 8])
    jobs = tuple(
        Job(id=str(n), arrival_s=10.0 * n, gpus=1, model="vgg16", iterations=1, compute_s=1.0)
        for n in range(400)
    )
    policy = open_policy("random-placement(fifo)", {})
    rows = Simulator(tree, jobs, LevelRates(tree)).run(policy)
    large = sum(row.placement.leaves == (0,) for row in rows.placements)
    assert large == pytest.approx(200, abs=40)  # four standard deviations


def test_draws_follow_from_the_seed() -> None:
    def where(seed: int) -> list[str]:
        scenario = Scenario(
            trace="tiny-batch", racks=2, policy="random-placement(themis)", seed=seed
        )
        return simulate(scenario).table("placements").signature.tolist()

    assert where(1) == where(1) != where(2)
