"""Which gangs would fit if some running jobs left, found without copying the free GPUs.

The index of the free GPUs answers for every unit but those that hold these jobs, and they are few.
Most ends of leases change nothing, and here a policy finds that out (`Policy.contests`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from artist.cluster.free_gpus import FreeGpus
from artist.contract import JobView


class Room:
    """The free GPUs and those of some running jobs, as far as `fits_one` and `total` tell."""

    __slots__ = ("_free", "_held", "_most", "hosts", "total", "tree")

    def __init__(self, free: FreeGpus, jobs: Iterable[JobView]) -> None:
        self.tree = tree = free.tree
        self.total = free.total
        # Whether machines may lack cores or memory: then the rest tells too little.
        self.hosts = free.hosts is not None
        self._free = free
        held: dict[int, int] = {}
        for job in jobs:
            placement = job.placement
            if placement is not None:
                self.total += placement.gpus
                for leaf, count in zip(placement.leaves, placement.counts):
                    held[leaf] = held.get(leaf, 0) + count
        # Per level but the outermost: GPUs of these jobs by unit, and the most in such a unit.
        self._held: list[dict[int, int]] = []
        self._most: list[int] = []
        for level in range(tree.root):
            most, parent = 0, tree.levels[level].parent
            outer: dict[int, int] = {}
            for unit, count in held.items():
                most = max(most, free.of(level, unit) + count)
                above = parent[unit]
                outer[above] = outer.get(above, 0) + count
            self._held.append(held)
            self._most.append(most)
            held = outer

    def fits_one(self, level: int, gpus: int) -> bool:
        """Whether some unit of a level (machine or outer) has at least so many GPUs."""
        if level == self.tree.root:
            return self.total >= gpus
        return self._most[level] >= gpus or self._free.fits_one(level, gpus)

    def machines(self, level: int) -> Iterator[list[int]]:
        """The GPUs of each machine of each unit of a level that holds some of these jobs."""
        machine = self.tree.machine
        held = self._held[machine]
        for unit in self._held[level] if level < self.tree.root else (0,):
            inside = self.tree.units_inside(level, unit, machine)
            free = self._free.counts_inside(machine, inside)
            yield [count + held.get(index, 0) for index, count in zip(inside, free)]
