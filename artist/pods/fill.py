"""Fills machines with pods that come and stay, and records what is held and what is fragmented."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from artist.errors import InvariantError
from artist.pods.arrivals import arrivals
from artist.pods.board import Board
from artist.pods.fragmentation import Fragmentation
from artist.pods.machine_file import MachineFile
from artist.pods.machines import Machines
from artist.pods.placers import PLACERS, Placer
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
    machines = Machines(file.machines, order)
    fragmentation = Fragmentation(pods, machines)
    rule: Placer = PLACERS[placer].load()(machines, fragmentation, draws)
    which = pods.which[arriving]
    board = Board(machines, rule)
    demands = pods.demands
    place = np.full(len(which), -1, np.int64)
    fragmented = np.empty(len(which), np.int64)
    of_machine = fragmentation.of(machines, np.arange(len(machines)))
    total, lacking = int(of_machine.sum()), Counter[str]()
    for pod, number in enumerate(which.tolist()):
        demand = demands[number]
        machine = board.best(demand)
        if machine >= 0:
            if demand.is_share:
                gpus = [rule.gpu(machine, demand)]
            else:
                gpus = machines.whole_gpus(machine, demand.gpus)
            machines.claim(machine, demand, gpus)
            board.tell(machine)
            place[pod] = machine
            now = int(fragmentation.of(machines, np.array([machine]))[0])
            total += now - int(of_machine[machine])
            of_machine[machine] = now
        else:
            lacking.update(board.lacking(demand))
        fragmented[pod] = total
    asked = np.array([demand.milli for demand in demands], np.int64)[which]
    held = np.cumsum(np.where(place >= 0, asked, 0))
    _check(machines, pods, which, place)
    return Filling(
        file.capacity_milli,
        fragmentation.pods,
        np.cumsum(asked),
        held,
        fragmented,
        place,
        dict(lacking.most_common()),
    )


def _check(machines: Machines, pods: PodList, which: Ints, place: Ints) -> None:
    """Free + held = all, on every machine, and no GPU is held beyond what it is.

    Raises:
        InvariantError: it is not so.
    """
    placed = place >= 0
    for all_, free, asked in (
        (machines.all_cpu_milli, machines.cpu_milli, [one.cpu_milli for one in pods.demands]),
        (machines.all_memory_mib, machines.memory_mib, [one.memory_mib for one in pods.demands]),
        (
            machines.all_gpu_milli.sum(axis=1),
            machines.gpu_milli.sum(axis=1),
            [one.milli for one in pods.demands],
        ),
    ):
        held = np.zeros(len(machines), np.int64)
        np.add.at(held, place[placed], np.array(asked, np.int64)[which[placed]])
        if (free + held != all_).any() or (free < 0).any() or (machines.gpu_milli < 0).any():
            raise InvariantError("free and held resources of a machine are not all that it has")
