"""Is F what the definition says, on machines worked out by hand and on drawn ones?"""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from pods_made_up import all_of, clusters, demand, group, lists, naive_f, pod_list, used

from artist.pods.fragmentation import Fragmentation, typical_pods
from artist.pods.machines import PodMachines
from artist.pods.pod_list import Demand, PodList


def f_of(machines: PodMachines, pods: PodList) -> list[float]:
    """F of each machine in thousandths of a GPU."""
    fragmentation = Fragmentation(pods, machines)
    return (fragmentation.of(machines, all_of(machines)) / fragmentation.pods).tolist()


def test_a_gpu_too_full_for_a_pod_is_a_fragment_to_it() -> None:
    # GPUs with 600 and 300 left. A pod of 500 finds the 600, so 300 are fragments; one of 200 finds
    # both; one of 700 none of 900. Equal frequencies: (300 + 0 + 900) / 3.
    machines = used([group(2)], (0, 0, 400), (0, 1, 700))
    assert f_of(machines, pod_list({demand(500): 1, demand(200): 1, demand(700): 1})) == [400.0]


def test_whole_gpus_are_of_use_only_if_there_are_enough() -> None:
    # Two free GPUs and one with 500 left. Pods on 2 GPUs leave the 500, pods on 3 leave all 2500.
    machines = used([group(3)], (0, 0, 500))
    assert f_of(machines, pod_list({demand(2000): 1})) == [500.0]
    assert f_of(machines, pod_list({demand(3000): 1})) == [2500.0]
    assert f_of(machines, pod_list({demand(2000): 3, demand(3000): 1})) == [1000.0]


def test_cpu_kind_and_pods_without_gpus_make_fragments() -> None:
    machines = PodMachines([group(1, 8000), group(1, 2000, kind="T4")])
    assert f_of(machines, pod_list({demand(500, 4000): 1})) == [0.0, 1000.0]
    assert f_of(machines, pod_list({demand(500, 1, ("T4",)): 1})) == [1000.0, 0.0]
    assert f_of(machines, pod_list({demand(500): 3, demand(0): 1})) == [250.0, 250.0]


def test_typical_pods_are_the_most_frequent_95_percent() -> None:
    small, large, rare = demand(100), demand(2000), demand(300)
    assert typical_pods(pod_list({rare: 5, small: 60, large: 35})) == {small: 60, large: 35}
    assert typical_pods(pod_list({rare: 6, small: 60, large: 34})) == {
        small: 60, large: 34, rare: 6,
    }  # fmt: skip
    # Of equally frequent ones the larger is typical; memory makes no difference.
    alike = Demand(1000, 99, 1, 100)
    assert typical_pods(pod_list({demand(100, 500): 2, small: 1, alike: 1, large: 36})) == {
        large: 36, small: 2,
    }  # fmt: skip


@given(groups=clusters, pods=lists, data=st.data())
def test_the_tables_give_the_sum_over_pods(groups, pods: PodList, data) -> None:
    machines = PodMachines(groups)
    for machine in range(len(machines)):
        machines.cpu_milli[machine] -= data.draw(st.integers(0, int(machines.cpu_milli[machine])))
        for gpu in range(int(machines.gpus[machine])):
            milli = data.draw(st.integers(0, 1000))
            machines.claim(machine, Demand(0, 0, 1, milli), [gpu])
    fragmentation, typical = Fragmentation(pods, machines), typical_pods(pods)
    expected = [naive_f(machines, machine, typical) for machine in range(len(machines))]
    assert fragmentation.of(machines, all_of(machines)).tolist() == expected
    assert fragmentation.pods == sum(typical.values())
    assert np.all(np.array(expected) <= fragmentation.pods * machines.idle_milli)
