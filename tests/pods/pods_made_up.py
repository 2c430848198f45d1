"""Small machines and pods for the tests of this folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from hypothesis import strategies as st

from artist.pods.machine_file import MachineFile, MachineGroup
from artist.pods.machines import PodMachines
from artist.pods.pod_list import Demand, PodList

KINDS = ("V100", "T4")


def group(gpus: int = 2, cpu_milli: int = 8000, count: int = 1, kind: str = "V100") -> MachineGroup:
    return MachineGroup(count=count, cpu_milli=cpu_milli, memory_mib=1000, gpus=gpus, kind=kind)


def demand(gpu_milli: int, cpu_milli: int = 1000, kinds: tuple[str, ...] = ()) -> Demand:
    """One of part of a GPU, one of whole GPUs (2000 are two), or one of none (0)."""
    gpus = max(1, gpu_milli // 1000) if gpu_milli else 0
    return Demand(cpu_milli, 0, gpus, min(gpu_milli, 1000), kinds)


def pod_list(counts: Mapping[Demand, int]) -> PodList:
    return PodList(tuple(counts), np.repeat(np.arange(len(counts)), [*counts.values()]))


def machine_file(*groups: MachineGroup) -> MachineFile:
    return MachineFile(name="few", summary="", source="made up", machines=groups)


def naive_f(machines: PodMachines, machine: int, typical: Mapping[Demand, int]) -> int:
    """F by its definition: pod by pod, GPU by GPU."""
    left = machines.gpu_milli[machine].tolist()
    kind = machines.kinds[machines.kind[machine]]
    total = 0
    for pod, count in typical.items():
        room = sum(one >= pod.gpu_milli for one in left) >= pod.gpus > 0
        enough = machines.cpu_milli[machine] >= pod.cpu_milli
        if room and enough and (not pod.kinds or kind in pod.kinds):
            total += count * sum(one for one in left if one < pod.gpu_milli)
        else:
            total += count * sum(left)
    return total


demands = (
    st.builds(
        Demand,
        st.sampled_from((0, 500, 1000, 2500, 4000, 9000)),
        st.integers(0, 400),
        st.just(1),
        st.sampled_from((1, 200, 333, 500, 750, 999, 1000)),
        st.sampled_from(((), ("V100",), ("T4",), ("V100", "T4"), ("K80",))),
        st.just(""),
    )
    | st.builds(
        Demand,
        st.sampled_from((0, 1000, 4000)),
        st.integers(0, 400),
        st.sampled_from((2, 3, 4, 8)),
        st.just(1000),
        st.sampled_from(((), ("V100",))),
        st.just(""),
    )
    | st.builds(
        Demand,
        st.sampled_from((500, 3000)),
        st.integers(0, 400),
        st.just(0),
        st.just(0),
        mig=st.just(""),
    )
)

lists = st.lists(demands, min_size=1, max_size=40).map(lambda some: pod_list(Counter(some)))

clusters = st.lists(
    st.builds(
        group,
        st.integers(0, 8),
        st.sampled_from((1000, 4000, 16000)),
        st.integers(1, 4),
        st.sampled_from(KINDS),
    ),
    min_size=1,
    max_size=4,
).filter(lambda groups: any(one.gpus for one in groups))


def all_of(machines: PodMachines) -> np.ndarray:
    return np.arange(len(machines))


def used(groups: Sequence[MachineGroup], *moves: tuple[int, int, int]) -> PodMachines:
    """Machines on which pods hold (machine, GPU, thousandths) and no CPU."""
    machines = PodMachines(groups)
    for machine, gpu, milli in moves:
        machines.claim(machine, Demand(0, 0, 1, milli), [gpu])
    return machines
