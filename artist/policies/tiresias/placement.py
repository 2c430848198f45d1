"""Tiresias' placement: skewed jobs into the fewest machines, the others anywhere.

Source: Gu et al., *Tiresias* (NSDI 2019), section 3.3.2.
"""

from __future__ import annotations

from collections.abc import Sequence

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement
from artist.policies.shared.packing import best_level, pack_in_level, pack_in_unit
from artist.policies.shared.placers import Placer


class FewestMachines(Placer):
    """In as few machines as an empty cluster would need; else wait.

    A job that fits a machine gets the one with the fewest free GPUs that suffice. A larger one
    goes into one unit of the innermost level that could hold it (a rack, say), and
    there only where it needs no more machines than in an empty unit; among such units into the
    one with the fewest free GPUs, the first among equals.
    """

    def possible(self, free: FreeGpus, gpus: int) -> bool:
        """Some unit of that level has room."""
        return free.fits_one(best_level(free.tree, gpus), gpus)

    def place(self, free: FreeGpus, gpus: int) -> Placement | None:
        """GPUs to take, None to wait."""
        tree = free.tree
        level = best_level(tree, gpus)
        if level == tree.machine:
            return pack_in_level(free, level, gpus)
        sizes = tree.levels[tree.machine].gpus
        units = [
            tree.units_inside(level, unit, tree.machine) for unit in range(len(tree.levels[level]))
        ]
        needed = [_machines(free, sizes, machines, gpus) for machines in units]
        fewest = min(len(machines) for machines in needed if machines)
        counts = free.counts(tree.machine).tolist()
        found: tuple[int, list[int]] | None = None
        for unit in free.at_least(level, gpus):
            room = free.of(level, unit)
            if found is None or room < found[0]:
                machines = _machines(free, counts, units[unit], gpus)
                if len(machines) == fewest:
                    found = room, machines
        return None if found is None else _take(free, found[1], gpus)


def _machines(free: FreeGpus, counts: Sequence[int], among: range, gpus: int) -> list[int]:
    """The fewest machines with so many GPUs by `counts`, empty if there are not enough.

    Most GPUs first, in visiting order; the last one has the fewest that hold the rest.
    """
    chosen: list[int] = []
    turns = {machine: free.turn(free.tree.machine, machine) for machine in among}
    ranked = sorted(among, key=lambda machine: (-counts[machine], turns[machine]))
    for position, machine in enumerate(ranked):
        if counts[machine] >= gpus:
            enough = [other for other in ranked[position:] if counts[other] >= gpus]
            return [*chosen, min(enough, key=lambda other: (counts[other], turns[other]))]
        chosen.append(machine)
        gpus -= counts[machine]
    return []


def _take(free: FreeGpus, machines: list[int], gpus: int) -> Placement:
    taken: dict[int, int] = {}
    for machine in machines:
        share = min(gpus, free.of(free.tree.machine, machine))
        taken |= pack_in_unit(free, free.tree.machine, machine, share)
        gpus -= share
    return Placement.of(taken)
