"""How the original simulator places a gang: innermost level first, first fit, not packed."""

from __future__ import annotations

from collections.abc import Iterable

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement
from artist.policies.original.hash_order import HashOrder


def fits(free: FreeGpus, levels: Iterable[int], gpus: int) -> bool:
    """Whether some unit of these levels has room."""
    # `FreeGpus.fits_one` knows no level inside machines. A machine with room is a good enough test.
    machine = free.tree.machine
    return gpus <= free.total and any(free.fits_one(max(level, machine), gpus) for level in levels)


def place(
    free: FreeGpus, levels: Iterable[int], gpus: int, visits: HashOrder
) -> tuple[int, Placement] | None:
    """A placement inside one unit, and that unit's level; None if no unit has room.

    The unit is the first one with room, in the first of these levels that has one. Machines and
    sockets are visited in the order of `visits`, racks in ascending order. The first free GPUs of
    the unit are taken. So a job in a rack may lie on many partly used machines.
    """
    machine = free.tree.machine
    for level in levels:
        if level <= machine:
            unit = visits.first_fit(free, level, gpus)
        else:
            unit = free.first_fit(level, gpus)
        if unit is not None:
            return level, first_gpus(free, level, unit, gpus)
    return None


def first_gpus(free: FreeGpus, level: int, unit: int, gpus: int) -> Placement:
    """The first free GPUs of a unit that has enough."""
    # The leaves of the unit are `first` to `last` - 1.
    first, last = unit, unit + 1
    for at in range(level, 0, -1):
        children = free.tree.levels[at].first_child
        first, last = children[first], children[last]
    counts = free.counts(0)[first:last]
    taken = {}
    for offset in counts.nonzero()[0].tolist():
        taken[first + offset] = min(gpus, int(counts[offset]))
        gpus -= taken[first + offset]
        if not gpus:
            break
    return Placement.of(taken)
