"""Fills machines with pods that stay, and records allocation and fragmentation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from artist.errors import ConfigError
from artist.pods.machine_file import MachineFile
from artist.pods.placing import Placing, check
from artist.pods.pod_list import Ints, PodList
from artist.rng import stream

MOST_PODS = 10_000_000
_DRAWN = 4096
"""How many pods are drawn at once."""


@dataclass(frozen=True, slots=True)
class Filling:
    """What happened, with a row for each pod in the order of arrival.

    `arrived_milli` is the demand up to and including this pod, `held_milli` what is held after it,
    in thousandths of GPUs. `fragmented` is F of all machines after it, in thousandths x `pods`.
    `machine` is the machine of the pod, by its place in the visiting order; -1 if it fitted
    nowhere. `lacking` names, by the row of a pod that fitted nowhere, each resource that alone was
    the obstacle (`Board.lacking`).
    """

    capacity_milli: int
    pods: int
    arrived_milli: Ints
    held_milli: Ints
    fragmented: Ints
    machine: Ints
    lacking: Mapping[int, Sequence[str]]


def fill(file: MachineFile, pods: PodList, placer: str, until: float, seed: int) -> Filling:
    """Place pods one after the other until they have asked for `until` x all GPUs.

    The visiting order of machines, which breaks ties, is drawn once. Weng et al. do the same: their
    nodes get random names, and their scheduler takes the first name. It matters: with an order
    drawn for every pod, packing and FGD lose 3 to 5 points of allocation.

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

    Both hold numbers, of pods and of machines. A placer that draws uses `draws`.

    Raises:
        UnknownNameError: no such placer.
    """
    placing = Placing(file, pods, placer, order, draws)
    which = pods.which[arriving]
    demands = pods.demands
    machine = np.full(len(which), -1, np.int64)
    fragmented = np.empty(len(which), np.int64)
    lacking: dict[int, Sequence[str]] = {}
    for pod, number in enumerate(which.tolist()):
        place = placing.place(demands[number])
        if place is not None:
            machine[pod] = place.machine
        else:
            lacking[pod] = placing.board.lacking(demands[number])
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
        lacking,
    )


def arrivals(pods: PodList, wanted_milli: int, seed: int) -> Ints:
    """The pods in their order of arrival, by number.

    First comes every pod of the list, shuffled. If they ask for less than `wanted_milli`
    thousandths of GPUs, more pods are drawn from the list, up to the first whose share of one GPU
    would exceed it. If they ask for more, pods drawn at random are left out.

    Source: the experiments of Weng et al., *Beware of fragmentation: Scheduling GPU-sharing
    workloads with fragmentation gradient descent* (USENIX ATC 2023, section 6.1; option `tune` of
    their program).

    Raises:
        ConfigError: about more than `MOST_PODS` would be needed, or none would be left.
    """
    draws = stream(seed, "pod-arrivals")
    milli = pods.milli
    order = draws.permutation(len(milli))
    asked = int(milli.sum())
    if wanted_milli * len(milli) > MOST_PODS * asked:
        raise ConfigError(
            f"so much demand needs about {wanted_milli * len(milli) // asked:,} pods, expected at "
            f"most {MOST_PODS:,}; give a smaller --until"
        )
    if asked > wanted_milli:
        away = draws.permutation(len(order))
        gone = np.searchsorted(np.cumsum(milli[order[away]]), asked - wanted_milli) + 1
        if gone == len(order):
            raise ConfigError("so little demand needs no pod; give a larger --until")
        return np.delete(order, away[:gone])
    each = np.array([one.gpu_milli for one in pods.demands], np.int64)[pods.which]
    chunks = [order]
    while True:
        drawn = draws.integers(len(milli), size=_DRAWN)
        before = asked + np.cumsum(milli[drawn]) - milli[drawn]
        over = np.flatnonzero(before + each[drawn] > wanted_milli)
        if over.size:
            return np.concatenate([*chunks, drawn[: over[0]]])
        chunks.append(drawn)
        asked = int(before[-1] + milli[drawn[-1]])
