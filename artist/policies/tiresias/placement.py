"""Tiresias' placement: skewed jobs go on the fewest machines.

Source: Gu et al., *Tiresias* (NSDI 2019), section 3.3.

    skew = bytes of the largest layer's gradients / bytes of all layers' gradients

A job whose largest tensor dominates the model suffers most from lying on several machines. Dally
(section I) calls skew "the ratio of the largest tensor size to the overall model size". The sizes
come from the model's layer table. A layer's weight and bias count as one tensor, because one
message carries both. The other jobs take the first free GPUs (`FirstFreePlacer`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from operator import truediv

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement
from artist.cluster.tree import ClusterTree
from artist.policies.shared.packing import best_level, pack_in_level, pack_in_unit
from artist.policies.shared.placers import Placer
from artist.policies.shared.sharing import Busy, nothing_busy
from artist.registry import UnknownNameError
from artist.workload.models import workload


@cache
def skew(model: str) -> float:
    """Skew of a model, from 0 to 1; 0 for a model that the catalogue does not know."""
    try:
        layers = workload(model).layers
    except UnknownNameError:
        return 0.0
    sizes = [layer.weight_grad.comm_bytes for layer in layers]
    # Not `/`, which a compiled module may round twice (decision 29).
    share: float = truediv(max(sizes), sum(sizes))
    return share


class FewestMachines(Placer):
    """On as few machines as the job would need in an empty cluster; else wait.

    - A job that fits a machine gets the machine with the fewest free GPUs that suffice.
    - A larger job goes into one unit of the innermost level that could hold it, a rack for
      example. The unit must offer a placement on no more machines than an empty unit would.
      Among such units, the job gets the one with the fewest free GPUs; the first among equals.
    """

    def widest(self, tree: ClusterTree, gpus: int) -> int:
        """The innermost level that could hold the job."""
        return best_level(tree, gpus)

    def place(self, free: FreeGpus, gpus: int, busy: Busy = nothing_busy) -> Placement | None:
        """The GPUs that a job of so many GPUs gets; None if it waits."""
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
        best: tuple[int, list[int]] | None = None
        for unit in free.at_least(level, gpus):
            room = free.of(level, unit)
            if best is None or room < best[0]:
                machines = _machines(free, counts, units[unit], gpus)
                if len(machines) == fewest:
                    best = room, machines
        return None if best is None else _take(free, best[1], gpus)


def _machines(free: FreeGpus, counts: Sequence[int], among: range, gpus: int) -> list[int]:
    """The fewest of these machines that together have `gpus` GPUs; empty if all have too few.

    `counts` says how many GPUs each machine of the cluster has. Machines with most GPUs are taken
    first, equal ones in visiting order. The last machine is the one with the fewest GPUs that
    hold the rest.
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
