"""Placers: which of the free GPUs a job gets.

All placers visit units in the cluster's visiting order, and break ties by it. No placer looks at
the speed of the network. A latency backend tells how fast a job runs on a placement. Only
`least-contended` looks at links, and only at how busy they are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Literal, TypeAlias

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement
from artist.contract import ClusterView
from artist.policies.shared.joint_placements import joint_placements
from artist.policies.shared.packing import best_level, pack_in_level, pack_in_unit
from artist.policies.shared.sharing import Busy, nothing_busy, pack_least_contended

PlacerName: TypeAlias = Literal["any", "pack", "consolidate-or-wait", "least-contended"]


class Placer(ABC):
    """A rule from free GPUs to a placement."""

    @abstractmethod
    def possible(self, free: FreeGpus, gpus: int) -> bool:
        """A cheap test. If it is False, `place` would return None."""

    @abstractmethod
    def place(self, free: FreeGpus, gpus: int, busy: Busy = nothing_busy) -> Placement | None:
        """The GPUs that a job of so many GPUs gets; None if it waits.

        `busy` tells how busy uplinks are (`Sharing.busy`). Most placers do not ask.
        """

    def candidates(
        self, view: ClusterView, counts: Mapping[int, int], n: int
    ) -> Iterator[Mapping[int, Placement]]:
        """Up to `n` joint placements of several jobs, in a fixed order.

        `counts` holds the number of GPUs of each job, by handle; 0 takes a running job's GPUs.
        All candidates give a job the same shape. `joint_placements` has the rule.
        """
        return joint_placements(self.place, view, counts, n)


class AnyPlacer(Placer):
    """The first free GPUs in visiting order, wherever they lie."""

    def possible(self, free: FreeGpus, gpus: int) -> bool:
        """Enough free GPUs in the cluster."""
        return free.total >= gpus

    def place(self, free: FreeGpus, gpus: int, busy: Busy = nothing_busy) -> Placement | None:
        """Machine by machine, in visiting order; packed inside the last one."""
        if free.total < gpus:
            return None
        taken: dict[int, int] = {}
        machine = free.tree.machine
        for unit in free.at_least(machine, 1):
            share = min(gpus, free.of(machine, unit))
            taken |= pack_in_unit(free, machine, unit, share)
            gpus -= share
            if not gpus:
                break
        return Placement.of(taken)


class PackPlacer(Placer):
    """As close together as the free GPUs allow; at worst scattered over the whole cluster."""

    def possible(self, free: FreeGpus, gpus: int) -> bool:
        """Enough free GPUs in the cluster."""
        return free.total >= gpus

    def place(self, free: FreeGpus, gpus: int, busy: Busy = nothing_busy) -> Placement | None:
        """Inside one unit of the innermost level (machine or outer) that has one with room."""
        if free.total < gpus:
            return None
        for level in range(free.tree.machine, len(free.tree.levels)):
            placement = pack_in_level(free, level, gpus)
            if placement is not None:
                return placement
        return None


class LeastContendedPlacer(PackPlacer):
    """At the level of `pack`, on the uplinks that are least busy; as `pack` if none is."""

    def place(self, free: FreeGpus, gpus: int, busy: Busy = nothing_busy) -> Placement | None:
        """`pack_least_contended` in the innermost level that has a unit with room."""
        for level in range(free.tree.machine, len(free.tree.levels)):
            placement = pack_least_contended(free, level, gpus, busy)
            if placement is not None:
                return placement
        return None


class ConsolidatePlacer(Placer):
    """Inside one unit of the innermost level that would have room if it were empty; else wait."""

    def possible(self, free: FreeGpus, gpus: int) -> bool:
        """Some unit of that level has room."""
        return free.fits_one(best_level(free.tree, gpus), gpus)

    def place(self, free: FreeGpus, gpus: int, busy: Busy = nothing_busy) -> Placement | None:
        """Inside one unit of that level, or not at all."""
        return pack_in_level(free, best_level(free.tree, gpus), gpus)


def placer(name: PlacerName) -> Placer:
    """A placer by name."""
    placers: dict[PlacerName, Placer] = {
        "any": AnyPlacer(),
        "pack": PackPlacer(),
        "consolidate-or-wait": ConsolidatePlacer(),
        "least-contended": LeastContendedPlacer(),
    }
    return placers[name]
