"""Gandiva's affinity: jobs of one GPU demand share machines.

Source: Xiao et al., *Gandiva* (OSDI 2018), section 4.2, reactive mode. Machines are told apart by
rack and machine; a unit's number in the tree stands for both.
"""

from __future__ import annotations

import numpy as np

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement, machine_counts
from artist.contract import JobView
from artist.policies.shared.packing import pack_in_unit
from artist.rng import stream


class Affinity:
    """Affinities of machines, homes of jobs, and where a job goes because of them."""

    def __init__(self, seed: int) -> None:
        self._demand: dict[int, int] = {}
        self._homes: dict[int, int] = {}
        self._rng = stream(seed, "gandiva.scatter")

    def place(self, job: JobView, free: FreeGpus) -> Placement | None:
        """GPUs for a job; None only if the cluster has too few free ones."""
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
        """A job got GPUs; `after` no longer has them."""
        level = after.tree.machine
        sizes = after.tree.levels[level].gpus
        counts = machine_counts(after.tree, placement)
        for machine, count in counts.items():
            was_idle = after.of(level, machine) + count == sizes[machine]
            if was_idle or machine not in self._demand:
                self._demand[machine] = job.job.gpus
        self._homes.pop(job.handle, None)
        if len(counts) == 1:
            (self._homes[job.handle],) = counts

    def forget(self, handle: int) -> None:
        """A job finished."""
        self._homes.pop(handle, None)

    def _machine(self, free: FreeGpus, gpus: int) -> int | None:
        """A machine with room: of the same affinity, idle, or of another one, in this order."""
        level = free.tree.machine
        sizes = free.tree.levels[level].gpus
        counts = free.counts(level)
        with_room = np.flatnonzero(counts >= gpus)
        best: tuple[int, int, int, int] | None = None
        for machine, room in zip(with_room.tolist(), counts[with_room].tolist(), strict=True):
            turn = free.turn(level, machine)
            if room == sizes[machine]:
                rank = (1, room, turn, machine)
            else:
                rank = (0 if self._demand.get(machine) == gpus else 2, -room, turn, machine)
            if best is None or rank < best:
                best = rank
        return None if best is None else best[3]

    def _scattered(self, free: FreeGpus, gpus: int) -> Placement:
        """All free GPUs of one machine after the other, in random order, until it is enough."""
        level = free.tree.machine
        counts = free.counts(level).tolist()
        taken: dict[int, int] = {}
        for machine in self._rng.permutation(len(counts)).tolist():
            if counts[machine]:
                share = min(gpus, counts[machine])
                taken |= pack_in_unit(free, level, machine, share)
                gpus -= share
                if not gpus:
                    break
        return Placement.of(taken)
