"""Tiresias' placement: skewed jobs go on the fewest machines.

Source: Gu et al., *Tiresias* (NSDI 2019), section 3.3.

    skew = bytes of the largest layer's gradients / bytes of all layers' gradients

A job whose largest tensor dominates the model suffers most from lying on several machines. Dally
(section I) calls skew "the ratio of the largest tensor size to the overall model size". The sizes
come from the model's layer table. A layer's weight and bias count as one tensor, because one
message carries both. The other jobs take the first free GPUs (`FirstFreePlacer`).
"""

from __future__ import annotations

from bisect import bisect_left
from functools import cache
from itertools import accumulate
from operator import truediv

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement
from artist.cluster.tree import ClusterTree
from artist.policies.shared.packing import best_level, pack_in_level, pack_in_unit
from artist.policies.shared.placers import Placer
from artist.policies.shared.room import Room
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

    def __init__(self) -> None:
        # Per GPU demand: on how few machines of this cluster it fits.
        self._tree: ClusterTree | None = None
        self._fewest: dict[int, int] = {}

    def widest(self, tree: ClusterTree, gpus: int) -> int:
        """The innermost level that could hold the job."""
        return best_level(tree, gpus)

    def may_gain(self, room: Room, gpus: int) -> bool:
        """As for any placer; and some unit must have the GPUs on few enough machines."""
        if not super().may_gain(room, gpus):
            return False
        if room.hosts:
            return True
        tree = room.tree
        level = best_level(tree, gpus)
        if level == tree.machine:
            return True
        fewest = self._fewest_machines(tree, gpus)
        return any(_hold(counts, fewest, gpus) for counts in room.machines(level))

    def place(self, free: FreeGpus, gpus: int, busy: Busy = nothing_busy) -> Placement | None:
        """The GPUs that a job of this many GPUs gets; None if it waits."""
        tree = free.tree
        level = best_level(tree, gpus)
        if level == tree.machine:
            return pack_in_level(free, level, gpus)
        fewest = self._fewest_machines(tree, gpus)
        for unit in free.tightest(level, gpus):
            inside = tree.units_inside(level, unit, tree.machine)
            if _hold(free.counts_inside(tree.machine, inside), fewest, gpus):
                return _take(free, _machines(free, inside, gpus), gpus)
        return None

    def _fewest_machines(self, tree: ClusterTree, gpus: int) -> int:
        """On how few machines of this cluster a job fits."""
        if tree is not self._tree:
            self._tree, self._fewest = tree, {}
        if gpus not in self._fewest:
            self._fewest[gpus] = _fewest(tree, best_level(tree, gpus), gpus)
        return self._fewest[gpus]


def _fewest(tree: ClusterTree, level: int, gpus: int) -> int:
    """The fewest machines of one unit that hold a job; some unit of the level can hold it."""
    sizes = tree.levels[tree.machine].gpus
    fewest = len(sizes)
    for unit in range(len(tree.levels[level])):
        inside = tree.units_inside(level, unit, tree.machine)
        largest_first = sorted(sizes[inside.start : inside.stop], reverse=True)
        together = list(accumulate(largest_first))
        if together[-1] >= gpus:
            fewest = min(fewest, bisect_left(together, gpus) + 1)
    return fewest


def _hold(counts: list[int], machines: int, gpus: int) -> bool:
    """Whether this many of these machines can hold a job."""
    return sum(sorted(counts, reverse=True)[:machines]) >= gpus


def _machines(free: FreeGpus, among: range, gpus: int) -> list[int]:
    """The fewest of these machines that together have `gpus` free GPUs; there are enough.

    Machines with most free GPUs are taken first, equal ones in visiting order. The last machine is
    the one with the fewest free GPUs that hold the rest.
    """
    level = free.tree.machine
    rooms = [(free.of(level, unit), free.turn(level, unit), unit) for unit in among]
    rooms.sort(key=lambda entry: (-entry[0], entry[1]))
    chosen: list[int] = []
    position = 0
    while rooms[position][0] < gpus:
        room, _, unit = rooms[position]
        chosen.append(unit)
        gpus -= room
        position += 1
    # The smallest entry: of the machines with the fewest free GPUs, the first one visited.
    _, _, last = min(entry for entry in rooms[position:] if entry[0] >= gpus)
    return [*chosen, last]


def _take(free: FreeGpus, machines: list[int], gpus: int) -> Placement:
    taken: dict[int, int] = {}
    for machine in machines:
        share = min(gpus, free.of(free.tree.machine, machine))
        taken |= pack_in_unit(free, free.tree.machine, machine, share)
        gpus -= share
    return Placement.of(taken)
