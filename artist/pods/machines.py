"""What machines have left: CPU, memory, and thousandths of each of their GPUs, in whole numbers.

For each resource, free + held = all, exactly. `claim` and `release` keep the sums that filters and
placers read.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from artist.cluster.mig import ALL, MEMORY_SLICES, PROFILES, best_start, free_starts, slices
from artist.pods.machine_file import MachineGroup
from artist.pods.pod_list import WHOLE_MILLI, Demand, Ints

Bools = npt.NDArray[np.bool_]


class Wishes(NamedTuple):
    """Demands as columns. `share_milli` is 0 for pods on whole GPUs, `whole` for pods on a share.

    `allowed` has a row for each kind of `PodMachines.kinds`.
    """

    cpu_milli: Ints
    memory_mib: Ints
    share_milli: Ints
    whole: Ints
    allowed: Bools
    has_mig: Bools
    demands: Sequence[Demand]


class PodMachines:
    """Machines by number, and what each has left.

    `cpu_milli`, `memory_mib` and `idle_milli` (thousandths of GPUs) are what is free. `whole` is
    the number of free GPUs, `most_milli` what the emptiest GPU has left. `gpu_milli` is what each
    GPU has left: a row for each machine, a column for each GPU, 0 if the machine has no such GPU.
    `tenants[machine, n]` counts the pods on n whole GPUs; n = 0 are pods that share a GPU. If any
    GPU is in MIG mode, `slices` are the memory slices that instances hold, as bits.
    """

    def __init__(self, groups: Sequence[MachineGroup], order: Ints | None = None) -> None:
        """Everything is free. Machine `i` is the machine `order[i]` of the groups."""
        counts = [group.count for group in groups]

        def column(values: Sequence[int]) -> Ints:
            repeated = np.repeat(np.array(values, np.int64), counts)
            return repeated if order is None else repeated[order]

        sorts = [(group.kind, group.mig) for group in groups]
        self._sorts = tuple(dict.fromkeys(sorts))
        self.kinds = tuple(kind for kind, _ in self._sorts)
        self.kind = column([self._sorts.index(sort) for sort in sorts])
        self.gpus = column([group.gpus for group in groups])
        self.all_cpu_milli = column([group.cpu_milli for group in groups])
        self.all_memory_mib = column([group.memory_mib for group in groups])
        width = max(group.gpus for group in groups)
        self.all_gpu_milli = WHOLE_MILLI * (np.arange(width) < self.gpus[:, np.newaxis])
        self.cpu_milli, self.memory_mib = self.all_cpu_milli.copy(), self.all_memory_mib.copy()
        self.gpu_milli = self.all_gpu_milli.copy()
        self.idle_milli = self.gpu_milli.sum(axis=1)
        self.whole = self.gpus.copy()
        self.most_milli = self.gpu_milli.max(axis=1)
        self.tenants = np.zeros((len(self.gpus), width + 1), np.int64)
        self._has_mig = any(mode is not None for _, mode in self._sorts)
        self.slices = np.zeros((len(self.gpus), width if self._has_mig else 0), np.int64)

    def __len__(self) -> int:
        return len(self.gpus)

    def allowed(self, demand: Demand) -> Bools:
        """By kind: whether the demand accepts it, and asks for an instance in MIG mode only."""
        return np.array(
            [
                (not demand.kinds or kind in demand.kinds)
                and (not demand.gpus or demand.mig in (PROFILES[mode] if mode else ("",)))
                for kind, mode in self._sorts
            ]
        )

    def room(self, demand: Demand, index: Ints) -> Bools:
        """By machine and GPU: whether there is room for a pod's share, or for its MIG instance."""
        room: Bools = self.gpu_milli[index] >= demand.gpu_milli
        return room & _can_start(demand.mig)[self.slices[index]] if demand.mig else room

    def fit(self, demand: Demand, index: Ints) -> Bools:
        """Which of the machines `index` can take a pod."""
        fit: Bools = self.cpu_milli[index] >= demand.cpu_milli
        fit &= self.memory_mib[index] >= demand.memory_mib
        if demand.is_share:
            fit &= self.most_milli[index] >= demand.gpu_milli
        elif demand.gpus:
            fit &= self.whole[index] >= demand.gpus
        if demand.kinds or self._has_mig or demand.mig:
            fit &= self.allowed(demand)[self.kind[index]]
        if demand.mig and self._has_mig:
            fit &= self.room(demand, index).any(axis=1)
        return fit

    def wishes(self, demands: Sequence[Demand]) -> Wishes:
        """Demands as columns, for `fits_on`."""
        return Wishes(
            np.array([one.cpu_milli for one in demands], np.int64),
            np.array([one.memory_mib for one in demands], np.int64),
            np.array([one.gpu_milli if one.is_share else 0 for one in demands], np.int64),
            np.array([0 if one.is_share else one.gpus for one in demands], np.int64),
            np.array([self.allowed(one) for one in demands]).T,
            np.array([bool(one.mig) for one in demands]),
            demands,
        )

    def fits_on(self, machine: int, wishes: Wishes) -> Bools:
        """Which demands of `wishes` a machine can take; like `fit`, for many pods at once."""
        fits: Bools = wishes.cpu_milli <= self.cpu_milli[machine]
        fits &= wishes.memory_mib <= self.memory_mib[machine]
        fits &= wishes.share_milli <= self.most_milli[machine]
        fits &= wishes.whole <= self.whole[machine]
        fits &= wishes.allowed[self.kind[machine]]
        if self._has_mig:
            for number in np.flatnonzero(fits & wishes.has_mig).tolist():
                one = np.array([machine])
                fits[number] = self.room(wishes.demands[number], one).any()
        return fits

    def whole_gpus(self, machine: int, count: int) -> list[int]:
        """The first free GPUs of a machine."""
        free: list[int] = np.flatnonzero(self.gpu_milli[machine] == WHOLE_MILLI)[:count].tolist()
        return free

    def claim(self, machine: int, demand: Demand, gpus: Sequence[int]) -> int:
        """Give a pod its CPU, its memory and its share of each of these GPUs.

        Returns the memory slice where its MIG instance begins; 0 if it has none.
        """
        start = 0
        if demand.mig:
            held = int(self.slices[machine, gpus[0]])
            start = best_start(demand.mig, held)
            self.slices[machine, gpus[0]] = held | slices(ALL[demand.mig], start)
        self._move(machine, demand, gpus, -1)
        return start

    def release(self, machine: int, demand: Demand, gpus: Sequence[int], start: int = 0) -> None:
        """Take back what a pod holds. `start` is what `claim` returned."""
        if demand.mig:
            self.slices[machine, gpus[0]] &= ~slices(ALL[demand.mig], start)
        self._move(machine, demand, gpus, 1)

    def _move(self, machine: int, demand: Demand, gpus: Sequence[int], sign: int) -> None:
        """Take what a pod asks for from a machine (`sign` -1), or give it back (1)."""
        self.cpu_milli[machine] += sign * demand.cpu_milli
        self.memory_mib[machine] += sign * demand.memory_mib
        if not demand.gpus:
            return
        left = self.gpu_milli[machine]
        for gpu in gpus:
            left[gpu] += sign * demand.gpu_milli
        self.idle_milli[machine] += sign * demand.milli
        self.whole[machine] = np.count_nonzero(left == WHOLE_MILLI)
        self.most_milli[machine] = left.max()
        self.tenants[machine, 0 if demand.is_share else demand.gpus] -= sign


@cache
def _can_start(name: str) -> Bools:
    """Whether an instance has a place to begin, by the bits of the slices that are held."""
    return np.array([bool(free_starts(name, held)) for held in range(1 << MEMORY_SLICES)])
