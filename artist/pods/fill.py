"""Fills machines with pods that come and stay, and records what is held and what is fragmented."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from artist.pods.arrivals import arrivals
from artist.pods.machine_file import MachineFile
from artist.pods.placing import Placing, check
from artist.pods.pod_list import Ints, PodList
from artist.rng import stream


@dataclass(frozen=True, slots=True)
class Filling:
    """What happened, a row for each pod in its order of arrival.

    `arrived_milli` is asked for up to and with this pod, and `held_milli` held after it,
    thousandths of GPUs. `fragmented` is F of all machines after it, thousandths x `pods`. `machine`
    is where it went, by its place in the visiting order; -1 if it fitted nowhere. `lacking` says
    for how many of these each resource alone was the obstacle (`Board.lacking`).
    """

    capacity_milli: int
    pods: int
    arrived_milli: Ints
    held_milli: Ints
    fragmented: Ints
    machine: Ints
    lacking: Mapping[str, int]


def fill(file: MachineFile, pods: PodList, placer: str, until: float, seed: int) -> Filling:
    """Place pods one after the other until they have asked for `until` x all GPUs.

    The visiting order, which breaks ties, is drawn once: machines are numbered in it. So Weng et
    al. do (their nodes get random names, and their scheduler takes the first name), and it matters:
    drawn anew for every pod, ties cost packing and FGD 3 to 5 points of allocation.

    Raises:
        UnknownNameError: no such placer.
        ConfigError: too many pods, or none.
    """
    draws = stream(seed, "placement")
    order = draws.permutation(file.count)
    arriving = arrivals(pods, int(until * file.capacity_milli), seed)
    return fill_in_order(file, pods, placer, order, arriving, draws)


def fill_in_order(
    file: MachineFile,
    pods: PodList,
    placer: str,
    order: Ints,
    arriving: Ints,
    draws: np.random.Generator,
) -> Filling:
    """Place the pods `arriving` one after the other. `order` is the visiting order of machines.

    Both are numbers of pods and machines. A placer that draws does so from `draws`.

    Raises:
        UnknownNameError: no such placer.
    """
    placing = Placing(file, pods, placer, order, draws)
    which = pods.which[arriving]
    demands = pods.demands
    machine = np.full(len(which), -1, np.int64)
    fragmented = np.empty(len(which), np.int64)
    lacking = Counter[str]()
    for pod, number in enumerate(which.tolist()):
        place = placing.place(demands[number])
        if place is not None:
            machine[pod] = place.machine
        else:
            lacking.update(placing.board.lacking(demands[number]))
        fragmented[pod] = placing.fragmented
    asked = np.array([demand.milli for demand in demands], np.int64)[which]
    held = np.cumsum(np.where(machine >= 0, asked, 0))
    check(placing.machines, pods, which, machine)
    return Filling(
        file.capacity_milli,
        placing.typical,
        np.cumsum(asked),
        held,
        fragmented,
        machine,
        dict(lacking.most_common()),
    )
