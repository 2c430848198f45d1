"""Gandiva's affinity: jobs of one GPU demand share machines.

Source: Xiao et al., *Gandiva* (OSDI 2018), section 4.2, reactive mode. `policy.py` has the rule.
"""

from __future__ import annotations

from typing import Final

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement, machine_counts
from artist.contract import JobView
from artist.policies.shared.packing import pack_in_unit
from artist.rng import Draws

ALL: Final = -1
"""A bit set of every turn."""


class Affinity:
    """Affinities of machines, and the placements that follow from them."""

    def __init__(self, draws: Draws) -> None:
        # Per machine: its affinity, a GPU demand. An idle machine keeps its old one, unused.
        self._demand: dict[int, int] = {}
        # By demand: the machines of this affinity, as a bit set of turns.
        self._machines: dict[int, int] = {}
        # Per job: the machine on which it lies, or lay last. Jobs on several machines have none.
        self._homes: dict[int, int] = {}
        self._rng = draws.stream("gandiva.scatter")
        # The order of machines for the job that comes forward; None until it is needed.
        self._order: list[int] | None = None

    def comes_forward(self) -> None:
        """The next job comes forward. If it needs an order of machines, it gets its own.

        It has the same order for the free GPUs and for the pool. With two draws it would take
        GPUs of running jobs whenever the second one happens to lie closer together.
        """
        self._order = None

    def place(self, job: JobView, free: FreeGpus) -> Placement | None:
        """A placement for a job; None only if the cluster has too few free GPUs."""
        gpus, level = job.job.gpus, free.tree.machine
        if free.total < gpus:
            return None
        machine = self._homes.get(job.handle)
        if machine is None or free.of(level, machine) < gpus:
            machine = self._machine(free, gpus)
        if machine is None:
            return self._scattered(free, gpus)
        return Placement.of(pack_in_unit(free, level, machine, gpus))

    def placed(self, job: JobView, placement: Placement, after: FreeGpus) -> None:
        """A job got GPUs. `after` holds the GPUs that are free afterwards."""
        level = after.tree.machine
        sizes = after.tree.levels[level].gpus
        counts = machine_counts(after.tree, placement)
        for machine, count in counts.items():
            was_idle = after.of(level, machine) + count == sizes[machine]
            if was_idle or machine not in self._demand:
                self._assign(machine, job.job.gpus, 1 << after.turn(level, machine))
        self._homes.pop(job.handle, None)
        if len(counts) == 1:
            (self._homes[job.handle],) = counts

    def _assign(self, machine: int, demand: int, bit: int) -> None:
        former = self._demand.get(machine)
        if former is not None:
            self._machines[former] ^= bit
        self._demand[machine] = demand
        self._machines[demand] = self._machines.get(demand, 0) | bit

    def forget(self, handle: int) -> None:
        """A job finished."""
        self._homes.pop(handle, None)

    def _machine(self, free: FreeGpus, gpus: int) -> int | None:
        """A machine with room: of the same affinity, idle, or of another affinity, in this order.

        None if no machine has room.
        """
        level = free.tree.machine
        idle = free.idle(level)
        own = self._machines.get(gpus, 0) & ~idle
        machine = free.fit_among(level, gpus, own, most=True)
        if machine is None:
            machine = free.fit_among(level, gpus, idle)
        if machine is None:
            machine = free.fit_among(level, gpus, ALL, most=True)
        return machine

    def _scattered(self, free: FreeGpus, gpus: int) -> Placement:
        """All free GPUs of machine after machine, in random order, until the job has enough."""
        level = free.tree.machine
        counts = free.counts(level).tolist()
        taken: dict[int, int] = {}
        if self._order is None:
            self._order = self._rng.permutation(len(counts)).tolist()
        for machine in self._order:
            if counts[machine]:
                share = min(gpus, counts[machine])
                taken |= pack_in_unit(free, level, machine, share)
                gpus -= share
                if not gpus:
                    break
        return Placement.of(taken)
