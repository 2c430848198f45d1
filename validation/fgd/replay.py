"""The authors' order of pods and machines for a seed, and our placers on it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from artist.pods.curves import Curves, curves
from artist.pods.fill import fill_in_order
from artist.pods.machine_file import MachineFile
from artist.pods.pod_list import PodList
from validation.fgd.go_random import GoRandom

DEMAND = 1.3
"""Times all GPUs (`tune`)."""

_ELSEWHERE = 10
"""Numbers that ten threads, which watch the simulated cluster, draw before machines are named."""


def orders(
    pods: PodList, names: Sequence[str], machines: int, capacity_milli: int, random: GoRandom
) -> tuple[list[int], list[int]]:
    """The pods as they arrive, and the machines as ties visit them, by number.

    `pkg/simulator/{core,simulator}.go` of hkust-adsl/kubernetes-scheduler-simulator: pods are
    sorted by name and shuffled, then taken away or drawn again until the demand is met.
    """
    random.int63()  # printed
    milli = pods.milli.tolist()
    each = [pods.demands[which].gpu_milli for which in pods.which.tolist()]
    order = sorted(range(len(names)), key=lambda pod: names[pod])
    by_name = list(order)
    random.shuffle(order)
    asked, wanted = sum(milli), DEMAND * capacity_milli
    if asked > wanted:
        while asked > wanted:
            asked -= milli[order.pop(random.below(len(order)))]
    else:
        while asked + each[pod := by_name[random.below(len(names))]] <= wanted:
            asked += milli[pod]
            order.append(pod)
    for _ in range(_ELSEWHERE):
        random.int63()
    rank = random.permutation(machines)
    return order, sorted(range(machines), key=lambda machine: rank[machine])


def replay(
    file: MachineFile,
    numbers: Sequence[int],
    pods: PodList,
    names: Sequence[str],
    placer: str,
    random: GoRandom,
) -> Curves:
    """The curves of a published run.

    `numbers` are the machines of `file` in the order of the authors' node list.
    """
    arriving, visited = orders(pods, names, file.count, file.capacity_milli, random)
    order = np.array([numbers[machine] for machine in visited])
    draws = np.random.default_rng(0)  # for `random` only, whose draws cannot be repeated
    return curves(fill_in_order(file, pods, placer, order, np.array(arriving), draws))
