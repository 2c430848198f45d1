"""Do placers choose as their rules say: by hand, and as a plain loop over the rule does?"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pods_made_up import all_of, clusters, demand, group, lists, naive_f, pod_list, used

from artist.pods.fragmentation import Fragmentation, typical_pods
from artist.pods.machines import PodMachines
from artist.pods.placers import PLACERS, PodPlacer
from artist.pods.pod_list import Demand, PodList
from artist.rng import stream


def placer(name: str, machines: PodMachines, pods: PodList | None = None) -> PodPlacer:
    fragmentation = Fragmentation(pods or pod_list({demand(500): 1}), machines)
    made: PodPlacer = PLACERS[name].load()(machines, fragmentation, stream(0, "placement"))
    return made


def scores(name: str, machines: PodMachines, pod: Demand, pods: PodList | None = None) -> list[int]:
    return placer(name, machines, pods).scores(all_of(machines), pod).tolist()


def test_fgd_by_hand() -> None:
    # All pods ask for 500. A half-used GPU that takes one more loses no fragment, nor does a free
    # one. On 800 left, 300 remain, which nobody can use: F grows by .3, and floor(100 / (1 + e^.3))
    # is 42. On 700, F falls from 0 to ... 200 remain: floor(100 / (1 + e^.2)) = 45.
    machines = used([group(1, count=4)], (0, 0, 500), (2, 0, 200), (3, 0, 300))
    assert scores("fgd", machines, demand(500)) == [50, 50, 42, 45]
    # A pod of 300 on 800 leaves a useful 500, on 500 it makes 200 useless, on 300 it takes a
    # fragment of .3: floor(100 / (1 + e^-.3)) = 57.
    machines = used([group(1, count=3)], (0, 0, 200), (1, 0, 500), (2, 0, 700))
    assert scores("fgd", machines, demand(300)) == [50, 45, 57]
    # All need 4 cores. A pod that leaves 3 of 8 makes the half GPU beside it useless: .5 more.
    machines = PodMachines([group(1)])
    pods = pod_list({demand(500, 4000): 1})
    assert scores("fgd", machines, demand(500, 5000), pods) == [37]
    assert scores("fgd", machines, demand(500, 4000), pods) == [50]


def test_fgd_takes_the_best_gpu_of_a_machine() -> None:
    machines = used([group(3)], (0, 0, 200), (0, 1, 500), (0, 2, 700))
    fgd = placer("fgd", machines)
    assert fgd.scores(np.array([0]), demand(300)).tolist() == [57]
    assert fgd.gpu(0, demand(300)) == 2
    assert fgd.gpu(0, demand(500)) == 1


def test_fgd_gives_a_gpu_that_has_room_where_every_score_is_zero() -> None:
    # The pod leaves 7 of 16 cores, too few for another: all eight GPUs become useless at once.
    pod = demand(333, 9000)
    machines = used([group(8, 16_000)], (0, 0, 668))
    fgd = placer("fgd", machines, pod_list({pod: 1}))
    assert fgd.scores(np.array([0]), pod).tolist() == [0]
    assert fgd.gpu(0, pod) == 1


def test_best_fit_and_dot_product_by_hand() -> None:
    # The largest machine has 8 cores and 2 GPUs. Machine 1 has a GPU held: 1.5 GPUs are left of 2.
    machines = used([group(2, count=2), group(1, 4000)], (1, 0, 500))
    pod = demand(500, 2000)
    # Left afterwards: (6/8 + 1.5/2) / 2 = .75; (6/8 + 1/2) / 2 = .625; (2/8 + .5/2) / 2 = .25.
    assert scores("best-fit", machines, pod) == [25, 37, 75]
    # Asked: (1/4, 1/4). Free: (1, 1), (1, 3/4), (1/2, 1/2). 1 - half the product.
    assert scores("dot-product", machines, pod) == [75, 78, 87]


def test_gpu_packing_by_hand() -> None:
    machines = used([group(4, count=3)], (0, 0, 300), (1, 2, 1000))
    assert scores("gpu-packing", machines, demand(500)) == [93, 49, 29]  # 100 - 7, free GPU, idle
    assert scores("gpu-packing", machines, demand(800)) == [49, 49, 29]
    assert scores("gpu-packing", machines, demand(2000)) == [48, 48, 29]
    assert scores("gpu-packing", machines, demand(0)) == [0, 0, 0]


def test_gpu_clustering_by_hand() -> None:
    # A share, nothing, a share and a whole GPU, a whole GPU. The largest machine has 4 GPUs.
    machines = used([group(4, count=4)], (0, 0, 400), (2, 0, 400), (2, 1, 1000), (3, 0, 1000))
    assert scores("gpu-clustering", machines, demand(500)) == [77, 25, 58, 6]
    assert scores("gpu-clustering", machines, demand(1000)) == [2, 25, 58, 81]
    assert scores("gpu-clustering", machines, demand(2000)) == [2, 25, 8, 6]
    assert scores("gpu-clustering", machines, demand(0)) == [0, 0, 0, 0]


def test_shares_go_to_the_fullest_gpu_with_room() -> None:
    machines = used([group(4)], (0, 1, 300), (0, 2, 600), (0, 3, 300))
    for name in ("best-fit", "dot-product", "gpu-packing", "gpu-clustering"):
        assert placer(name, machines).gpu(0, demand(500)) == 1
        assert placer(name, machines).gpu(0, demand(800)) == 0
    rule = placer("random", machines)
    chosen = {rule.gpu(0, demand(600)) for _ in range(99)}
    assert chosen == {0, 1, 3}


@pytest.mark.parametrize("name", [entry.id for entry in PLACERS])
def test_the_first_of_equal_machines_is_picked(name: str) -> None:
    found = np.array([-1, 40, 50, 50, -1], np.int32)
    rule = placer(name, PodMachines([group()]))
    picked = {rule.pick(found) for _ in range(99)}
    assert picked == ({1, 2, 3} if name == "random" else {2})


@given(groups=clusters, pods=lists, data=st.data())
def test_fgd_is_the_fall_of_f(groups, pods: PodList, data) -> None:
    machines = PodMachines(groups)
    for machine in range(len(machines)):
        for gpu in range(int(machines.gpus[machine])):
            machines.claim(machine, Demand(0, 0, 1, data.draw(st.integers(0, 1000))), [gpu])
    pod = data.draw(st.sampled_from(pods.demands))
    room = np.flatnonzero(machines.fit(pod, all_of(machines)))
    rule, typical = placer("fgd", machines, pods), typical_pods(pods)
    found = rule.scores(room, pod)
    for machine, score in zip(room.tolist(), found.tolist(), strict=True):
        before = naive_f(machines, machine, typical)
        choices = [machines.whole_gpus(machine, pod.gpus)]
        if pod.is_share:
            gpus = np.flatnonzero(machines.gpu_milli[machine] >= pod.gpu_milli)
            choices = [[gpu] for gpu in gpus.tolist()]
        tried = []
        for gpus in choices:
            machines.claim(machine, pod, gpus)
            fall = before - naive_f(machines, machine, typical)
            machines.release(machine, pod, gpus)
            in_gpus = fall / 1000 / sum(typical.values())
            tried.append(math.floor(100 / (1 + math.exp(-in_gpus)) + 1e-9))
        assert score == max(tried)
        if pod.is_share:
            assert rule.gpu(machine, pod) == choices[tried.index(max(tried))][0]
