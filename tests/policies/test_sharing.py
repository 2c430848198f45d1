"""Does a job take idle links, and does it wait where it or a neighbour would lose too much?

The network is that of the tests of runs: racks of two machines with eight GPUs, and uplinks of
racks that carry half of what sixteen GPUs send.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from network.runs import job, network, rates
from support import finishes, intervals, make_policy, on, simulator

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.tree import nested
from artist.config import Scenario
from artist.contract import NO_SHARED_LINKS, ClusterView, Decision, Policy, Start
from artist.policies.shared.placers import placer
from artist.policies.shared.sharing import pack_least_contended
from artist.run import simulate
from artist.testing import LevelRates, check_policy, situations

LEAST = {"placement": "least-contended"}
HOSTS = ["fifo", "fifo-backfill", "sjf", "las", "srtf", "srsf", "tiresias", "gandiva", "themis"]


def free_gpus(*free: int) -> FreeGpus:
    """Two racks of two machines, four GPUs each."""
    state = FreeGpus(nested(("machine", "rack", "network"), [[4, 4], [4, 4]]))
    state.claim(on({unit: 4 - left for unit, left in enumerate(free) if left < 4}))
    return state


# -- the placer --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gpus", "busy", "expected"),
    [
        # Two jobs: one on two GPUs of machines 0 and 1 each, one on a GPU of machine 2. Nothing
        # is busy: the fuller rack. Its machines' uplinks are: the other rack.
        (4, {}, {0: 2, 1: 2}),
        (4, {(0, 0): 0.5, (0, 1): 0.5}, {3: 4}),
        (5, {(0, 0): 0.5, (0, 1): 0.5}, {3: 4, 2: 1}),
        # Only machine 2 is busy, so rack 0 has room for four, and nobody for five apart.
        (5, {(0, 2): 0.2}, {3: 4, 2: 1}),
        # A level is never given up, and of two busy places the less busy one is taken.
        (2, {(0, 0): 0.5}, {0: 2}),  # inside a machine no uplink is crossed
        (7, {(0, 0): 0.5, (0, 2): 0.5}, {3: 4, 2: 3}),  # only rack 1 has seven
        (8, {(1, 0): 0.5, (0, 0): 0.1}, {3: 4, 2: 3, 1: 1}),  # across racks, past machine 0
    ],
)
def test_idle_links_are_taken_at_the_same_level(gpus, busy, expected) -> None:
    placement = placer("least-contended").place(free_gpus(2, 2, 3, 4), gpus, lambda: busy)
    assert placement == on(expected)


def test_of_two_busy_racks_the_less_busy_one_is_taken() -> None:
    state = free_gpus(3, 3, 4, 4)
    busy = {(0, 0): 0.3, (0, 1): 0.3, (0, 2): 0.2, (0, 3): 0.4}
    assert pack_least_contended(state, 1, 6, lambda: busy) == on({0: 3, 1: 3})
    assert pack_least_contended(state, 1, 6, lambda: {**busy, (0, 3): 0.1}) == on({2: 4, 3: 2})


@pytest.mark.parametrize("gpus", range(1, 14))
def test_without_busy_links_it_is_the_placer_pack(gpus: int) -> None:
    state = free_gpus(2, 2, 3, 4)
    assert placer("least-contended").place(state, gpus) == placer("pack").place(state, gpus)


@pytest.mark.parametrize("name", [*HOSTS, "dally"])
def test_under_none_a_run_is_that_of_pack_to_the_byte(name: str) -> None:
    def run(**options: object) -> object:
        scenario = Scenario(trace="tiny-batch", racks=1, policy=name, policy_options=options)
        return simulate(scenario).table("placements")

    packed = run(placement="pack")
    assert run(**LEAST).equals(packed)
    assert run(placement="pack", most_slowdown=0.0).equals(packed)


# -- runs on links -----------------------------------------------------------------


class Fixed:
    """Answers of a policy, where some jobs' placements are given by handle."""


def run(policy: Policy, jobs: Sequence, racks: int = 4, model: str = "mean"):
    on_network = network(racks)
    return simulator(on_network.tree, jobs, rates(model, on_network), lease_s=None).run(policy)


def test_the_third_job_goes_where_links_are_idle() -> None:
    # Two jobs of 24 GPUs leave a machine in each of two racks. Both cross to a third rack.
    jobs = [job("a", gpus=20), job("b", gpus=20), job("c", gpus=20, iterations=10)]
    taken = {}
    for name in ("pack", "least-contended"):
        rows = run(make_policy("fifo", placement=name), jobs, racks=6)
        taken[name] = [set(intervals(rows, handle)[0].placement.leaves) for handle in range(3)]
    # Racks have machines 2r and 2r + 1. A job takes a rack and four GPUs of the next one.
    assert (
        taken["pack"] == [{0, 1, 2}, {3, 4, 5}, {6, 7, 8}]
        or taken["pack"] != taken["least-contended"]
    )
    racks = [{machine // 2 for machine in machines} for machines in taken["least-contended"]]
    assert not racks[0] & racks[1]
    assert not racks[2] & (racks[0] | racks[1])


def test_a_job_that_would_slow_a_neighbour_waits_until_it_ends() -> None:
    print("TODO")
