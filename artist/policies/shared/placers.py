"""Where a job's GPUs should lie, given which are free.

All placers visit units in the cluster's visiting order and break ties by it. None of
them looks at the network: how bad a placement is, the latency backend says.
"""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement
from artist.cluster.tree import ClusterTree

PlacerName: TypeAlias = Literal["any", "pack", "consolidate-or-wait"]


class Placer(Protocol):
    """A rule from free GPUs to a placement."""

    def possible(self, free: FreeGpus, gpus: int) -> bool:
        """A cheap test: False only if `place` would return None."""
        ...

    def place(self, free: FreeGpus, gpus: int) -> Placement | None:
        """GPUs to take, None to wait."""
        ...


class AnyPlacer:
    """The first free GPUs in the order of visits, wherever they lie."""

    def possible(self, free: FreeGpus, gpus: int) -> bool:
        """Enough free GPUs in the cluster."""
        return free.total >= gpus

    def place(self, free: FreeGpus, gpus: int) -> Placement | None:
        """Machine by machine, in the order of visits; packed inside the last one."""
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


class PackPlacer:
    """As consolidated as the free GPUs allow, down to scattered over the whole cluster."""

    def possible(self, free: FreeGpus, gpus: int) -> bool:
        """Enough free GPUs in the cluster."""
        return free.total >= gpus

    def place(self, free: FreeGpus, gpus: int) -> Placement | None:
        """In the innermost level (machine or outer) that has a unit with room."""
        if free.total < gpus:
            return None
        for level in range(free.tree.machine, len(free.tree.levels)):
            placement = pack_in_level(free, level, gpus)
            if placement is not None:
                return placement
        return None


class ConsolidatePlacer:
    """In the innermost level whose units could hold the job if empty; else wait."""

    def possible(self, free: FreeGpus, gpus: int) -> bool:
        """Some unit of that level has room."""
        return free.fits_one(best_level(free.tree, gpus), gpus)

    def place(self, free: FreeGpus, gpus: int) -> Placement | None:
        """In that level or not at all."""
        return pack_in_level(free, best_level(free.tree, gpus), gpus)


def placer(name: PlacerName) -> Placer:
    """A placer by name."""
    placers: dict[PlacerName, Placer] = {
        "any": AnyPlacer(),
        "pack": PackPlacer(),
        "consolidate-or-wait": ConsolidatePlacer(),
    }
    return placers[name]


def best_level(tree: ClusterTree, gpus: int) -> int:
    """The innermost level, machine or outer, with a unit of at least `gpus` GPUs."""
    for level in range(tree.machine, tree.root):
        if tree.largest(level) >= gpus:
            return level
    return tree.root


def pack_in_level(free: FreeGpus, level: int, gpus: int) -> Placement | None:
    """Inside one unit of a level: the one with the fewest free GPUs that suffice."""
    unit = free.best_fit(level, gpus)
    return None if unit is None else Placement.of(pack_in_unit(free, level, unit, gpus))


def pack_in_unit(free: FreeGpus, level: int, unit: int, gpus: int) -> dict[int, int]:
    """GPUs per leaf of one unit that has them, from as few children as possible."""
    taken: dict[int, int] = {}
    _fill(free, level, unit, gpus, taken)
    return taken


def _fill(free: FreeGpus, level: int, unit: int, gpus: int, taken: dict[int, int]) -> None:
    """Take `gpus` of a unit that has them, from as few children as possible.

    Children with most free GPUs come first; as soon as one child can hold the rest, the
    one with the fewest sufficient free GPUs does.
    """
    while level:
        if free.of(level, unit) == gpus:
            taken |= free.everything(level, unit)
            return
        child = free.best_child(level, unit, gpus)
        if child is None:
            child, gpus = _fill_largest(free, level, unit, gpus, taken)
        level, unit = level - 1, child
    taken[unit] = gpus


def _fill_largest(
    free: FreeGpus, level: int, unit: int, gpus: int, taken: dict[int, int]
) -> tuple[int, int]:
    """Take whole children until one can hold the rest; that child and the rest."""
    children, counts = free.children(level, unit)
    # Sorting keeps the order of visits among equals, also when it is reversed.
    for index in sorted(range(len(counts)), key=counts.__getitem__, reverse=True):
        if counts[index] >= gpus:
            break
        taken |= free.everything(level - 1, children[index])
        gpus -= counts[index]
        counts[index] = 0
    enough = min(count for count in counts if count >= gpus)
    return children[counts.index(enough)], gpus
