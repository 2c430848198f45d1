"""Does filling keep its invariants, repeat exactly, and match what Weng et al. published?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pods_made_up import clusters, demand, demands, group, lists, machine_file, pod_list

from artist.errors import ConfigError
from artist.pods.curves import curves, summary
from artist.pods.fill import arrivals, fill
from artist.pods.fragmentation import Fragmentation
from artist.pods.machine_file import load_machines
from artist.pods.machines import PodMachines
from artist.pods.placers import PLACERS
from artist.pods.placing import Board
from artist.pods.pod_list import PodList, read_pods
from artist.rng import stream

OPENB = Path(__file__).parents[3] / "shared" / "traces" / "alibaba_openb_pods.csv"

PUBLISHED = {
    "random": 86.30, "dot-product": 90.62, "gpu-clustering": 91.65, "gpu-packing": 91.78,
    "best-fit": 92.86, "fgd": 95.23,
}  # fmt: skip
"""Percent of GPUs allocated when the pods of openb have asked for all, means of 10 seeds
(hkust-adsl/kubernetes-scheduler-simulator, experiments/analysis/expected_results)."""


@given(groups=clusters, some=st.lists(demands, max_size=30), seed=st.integers(0, 9))
def test_free_and_held_are_all(groups, some, seed: int) -> None:
    machines, draws = PodMachines(groups), np.random.default_rng(seed)
    held = []
    for pod in some:
        room = np.flatnonzero(machines.fit(pod, np.arange(len(machines))))
        if not room.size:
            continue
        machine = int(draws.choice(room))
        gpus = machines.whole_gpus(machine, pod.gpus)
        if pod.is_share:
            gpus = [int(np.flatnonzero(machines.gpu_milli[machine] >= pod.gpu_milli)[-1])]
        machines.claim(machine, pod, gpus)
        held.append((machine, pod, gpus))
        for machine in range(len(machines)):
            here = [(one, used) for at, one, used in held if at == machine]
            left = machines.gpu_milli[machine]
            assert (
                machines.cpu_milli[machine] + sum(one.cpu_milli for one, _ in here)
                == (machines.all_cpu_milli[machine])
            )
            assert machines.memory_mib[machine] >= 0
            for gpu, milli in enumerate(machines.all_gpu_milli[machine].tolist()):
                taken = sum(one.gpu_milli for one, used in here if gpu in used)
                assert left[gpu] + taken == milli >= taken
            assert machines.idle_milli[machine] == left.sum()
            assert machines.whole[machine] == (left == 1000).sum()
            assert machines.most_milli[machine] == left.max()
            assert machines.tenants[machine].sum() == sum(one.gpus > 0 for one, _ in here)
    for machine, pod, gpus in held:
        machines.release(machine, pod, gpus)
    for name, free in vars(PodMachines(groups)).items():
        assert np.array_equal(getattr(machines, name), free), name


@pytest.mark.parametrize("name", [entry.id for entry in PLACERS])
@settings(max_examples=40)
@given(groups=clusters, pods=lists, seed=st.integers(0, 99))
def test_kept_scores_are_those_of_today(name: str, groups, pods: PodList, seed: int) -> None:
    """A board that remembers picks what one that rescores every machine does."""
    machines = PodMachines(groups)
    fragmentation = Fragmentation(pods, machines)
    rule = PLACERS[name].load()(machines, fragmentation, stream(seed, "placement"))
    board = Board(machines, rule)
    for number in np.random.default_rng(seed).integers(len(pods.demands), size=30).tolist():
        pod = pods.demands[number]
        machine = board.best(pod)
        room = np.flatnonzero(machines.fit(pod, np.arange(len(machines))))
        if not room.size:
            assert machine == -1
            continue
        if name == "random":
            assert machine in room
        else:
            anew = rule.scores(room, pod)
            assert machine == room[anew.argmax()]
        gpus = [rule.gpu(machine, pod)] if pod.is_share else machines.whole_gpus(machine, pod.gpus)
        machines.claim(machine, pod, gpus)
        board.tell(machine)


@settings(max_examples=25)
@given(groups=clusters, pods=lists, until=st.sampled_from((0.2, 1.0, 2.0)))
def test_a_filling_is_lawful_and_the_same_twice(groups, pods: PodList, until: float) -> None:
    if not any(pod.milli for pod in pods.demands):
        return
    file = machine_file(*groups)
    for name in ("fgd", "random"):
        try:
            one, other = (fill(file, pods, name, until, 3) for _ in range(2))
        except ConfigError as error:
            assert "so little demand" in str(error)
            continue
        assert np.array_equal(one.machine, other.machine)
        assert np.array_equal(one.fragmented, other.fragmented)
        idle = one.capacity_milli - one.held_milli
        assert (one.held_milli <= one.arrived_milli).all()
        assert (idle >= 0).all()
        assert (one.fragmented >= 0).all()
        assert (one.fragmented <= one.pods * idle).all()
        columns = curves(one)
        assert (np.diff(columns["demand_percent"]) >= 1).all()
        assert columns["allocated_percent"].max() <= 100


def test_as_many_pods_arrive_as_make_the_demand() -> None:
    pods = pod_list({demand(500): 6, demand(2000): 2, demand(0): 2})  # 7,000 thousandths
    assert sorted(arrivals(pods, 7000, 1)) == [*range(10)]
    more = arrivals(pods, 70_000, 1)
    assert sorted(more[:10]) == [*range(10)]
    assert 70_000 - 1000 <= pods.milli[more].sum() <= 71_000
    assert len(arrivals(pod_list({demand(500): 2}), 4000, 1)) == 8
    less = arrivals(pods, 4000, 1)
    assert len({*less.tolist()}) == len(less) < 10
    assert 2000 < pods.milli[less].sum() <= 4000
    assert arrivals(pods, 7000, 1).tolist() == arrivals(pods, 7000, 1).tolist()
    assert arrivals(pods, 7000, 1).tolist() != arrivals(pods, 7000, 2).tolist()


def test_a_curve_is_the_mean_of_the_pods_of_a_percent() -> None:
    # 4 GPUs, pods of .5: demand rises by 12.5 %, which rounds to even: 12, 25, 38, 50, ... All fit.
    columns = curves(fill(machine_file(group(4)), pod_list({demand(500): 8}), "fgd", 1.0, 0))
    at = columns["demand_percent"].tolist()
    assert at == [11, 12, 13, 24, 25, 26, 37, 38, 39, 49, 50, 51, 61, 62, 63, 74, 75, 76, 87, 88,
                  89, 99, 100]  # fmt: skip
    allocated = dict(zip(at, columns["allocated_percent"].tolist(), strict=True))
    assert [allocated[percent] for percent in (11, 12, 38, 39, 100)] == [
        12.5,
        12.5,
        37.5,
        37.5,
        100,
    ]
    # A half-used GPU is no fragment to these pods, so nothing ever is.
    assert columns["fragmented_percent"].tolist() == [0.0] * len(at)


def shares_allocated(name: str, seeds: int) -> float:
    if not OPENB.is_file():
        pytest.skip("needs the pods of openb, which artist does not ship")
    pods, machines = read_pods(OPENB), load_machines("openb")
    found = []
    for seed in range(seeds):
        columns = curves(fill(machines, pods, name, 1.05, seed))
        found.append(columns["allocated_percent"][columns["demand_percent"] == 100][0])
    return float(np.mean(found))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fgd", "best-fit"])
def test_openb_is_filled_as_published(name: str) -> None:
    # Their runs scatter by .10 and .14 points: two of ours by .07 to .1.
    assert shares_allocated(name, 2) == pytest.approx(PUBLISHED[name], abs=0.3)


@pytest.mark.slow
@pytest.mark.parametrize("name", PUBLISHED)
def test_every_placer_fills_openb_as_published(name: str) -> None:
    # The coarse scores of packing and clustering make runs scatter by .5 to .6 points.
    assert shares_allocated(name, 5) == pytest.approx(PUBLISHED[name], abs=0.6)


def test_the_resource_that_a_pod_lacks_is_named() -> None:
    machines = PodMachines([group(1, 8000), group(2, 1000, kind="T4")])
    pods = pod_list({demand(500): 1})
    rule = PLACERS["best-fit"].load()(
        machines, Fragmentation(pods, machines), stream(0, "placement")
    )
    board = Board(machines, rule)
    for pod, lacking in (
        (demand(2000, 2000), ("cpu", "gpus")),  # the T4s have too little CPU, the V100 is alone
        (demand(500, 2000, ("T4",)), ("cpu", "gpus", "kind")),
        (demand(500)._replace(memory_mib=1001), ("memory",)),
        (demand(4000, 9000), ("several",)),
    ):
        assert board.best(pod) == -1
        assert board.lacking(pod) == lacking
    machines.claim(0, demand(1000, 8000), [0])
    board.tell(0)
    assert board.lacking(demand(2000, 2000)) == ("cpu",)


@pytest.mark.parametrize("until", [1.0, 2.0])
def test_counts_are_those_at_full_demand_however_many_pods_come_after(until: float) -> None:
    # Five machines have CPUs for one pod each, and ten GPUs for twenty halves.
    file = machine_file(group(gpus=2, cpu_milli=64_000, count=5))
    filled = fill(file, pod_list({demand(500, 40_000): 1}), "fgd", until, seed=0)
    facts = summary([(filled, curves(filled))])
    assert (facts["demand_percent"], facts["allocated_percent"]) == (100, 25.0)
    assert (facts["pods"], facts["placed"], facts["lacking"]) == (20, 5, {"cpu": 15})
