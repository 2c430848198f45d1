"""Packing a gang into one unit of the cluster tree, from as few children as possible.

Example: a machine has sockets with 4 and 2 free GPUs. A job of 5 GPUs gets 4 of the first socket
and 1 of the second.

No function changes the free GPUs that it is given. Ties go to the unit that comes first in
visiting order.
"""

from __future__ import annotations

from collections.abc import Iterable

from artist.cluster.free_gpus import FreeGpus, Unit
from artist.cluster.placement import Placement
from artist.cluster.tree import ClusterTree


def best_level(tree: ClusterTree, gpus: int) -> int:
    """The innermost level, machine or outer, with a unit of at least `gpus` GPUs."""
    for level in range(tree.machine, tree.root):
        if tree.largest(level) >= gpus:
            return level
    return tree.root


def widest_level(tree: ClusterTree, gpus: int) -> int:
    """The outermost level that a job may span, except under the placer `any`.

    A job that fits in one region is not split among regions: over a wide-area network it would take
    hundreds of times as long.
    """
    region = tree.root - 1
    return region if tree.wide_area and tree.largest(region) >= gpus else tree.root


def pack_in_level(
    free: FreeGpus, level: int, gpus: int, inside: Unit | None = None
) -> Placement | None:
    """Pack into one unit of a level: the one with the fewest free GPUs that suffice.

    None if no unit has room. With `inside`, only units inside that unit of an outer level, such as
    a rack, are considered.
    """
    unit = free.best_fit(level, gpus, inside)
    return None if unit is None else Placement.of(pack_in_unit(free, level, unit, gpus))


def pack_in_unit(free: FreeGpus, level: int, unit: int, gpus: int) -> dict[int, int]:
    """Pack into a unit that has at least `gpus` free GPUs. Returns GPUs by leaf."""
    taken: dict[int, int] = {}
    _fill(free, level, unit, gpus, taken)
    return taken


def fill_machines(free: FreeGpus, machines: Iterable[int], gpus: int) -> Placement:
    """Take all free GPUs of one machine after the other, and pack the rest into the last one.

    Together the machines must have at least `gpus` free GPUs.
    """
    taken: dict[int, int] = {}
    machine = free.tree.machine
    for unit in machines:
        share = min(gpus, free.of(machine, unit))
        taken |= pack_in_unit(free, machine, unit, share)
        gpus -= share
        if not gpus:
            break
    return Placement.of(taken)


def _fill(free: FreeGpus, level: int, unit: int, gpus: int, taken: dict[int, int]) -> None:
    """Add GPUs of a unit that has enough to `taken`, from as few children as possible.

    Whole children are taken, those with most free GPUs first. As soon as one child can hold the
    rest, the rest goes to the child with the fewest free GPUs that suffice.
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
    """Take whole children until one child can hold the rest. Returns that child and the rest."""
    children, counts = free.children(level, unit)
    # Python's sort is stable, also with `reverse`: equal children stay in visiting order.
    for index in sorted(range(len(counts)), key=counts.__getitem__, reverse=True):
        if counts[index] >= gpus:
            break
        taken |= free.everything(level - 1, children[index])
        gpus -= counts[index]
        counts[index] = 0
    enough = min(count for count in counts if count >= gpus)
    return children[counts.index(enough)], gpus
