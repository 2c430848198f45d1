"""Which gangs would fit if some running jobs left, without a copy of the free GPUs.

The index of the free GPUs answers for all units except those that hold these jobs, which are few.
Most ends of leases change nothing; a `Room` lets a policy find that out (`Policy.contests`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from artist.cluster.free_gpus import FreeGpus
from artist.contract import JobView


class Room:
    """The free GPUs together with those of some running jobs."""

    __slots__ = ("_free", "_held", "_most", "hosts", "total", "tree")

    def __init__(self, free: FreeGpus, jobs: Iterable[JobView]) -> None:
        self.tree = tree = free.tree
        self.total = free.total
        # Whether machines may lack CPU cores or memory. If so, GPU counts alone say too little.
        self.hosts = free.hosts is not None
        self._free = free
        held: dict[int, int] = {}
        for job in jobs:
            placement = job.placement
            if placement is not None:
                self.total += placement.gpus
                for leaf, count in zip(placement.leaves, placement.counts):
                    held[leaf] = held.get(leaf, 0) + count
        # Per level except the outermost: GPUs of these jobs by unit, and the most GPUs, with free
        # ones, in any of these units.
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
        """Whether some unit of a level (machine or outer) has at least `gpus` GPUs."""
        if level == self.tree.root:
            return self.total >= gpus
        return self._most[level] >= gpus or self._free.fits_one(level, gpus)

    def machines(self, level: int) -> Iterator[list[int]]:
        """For each unit of a level that holds some of these jobs: the GPUs of each machine."""
        machine = self.tree.machine
        held = self._held[machine]
        for unit in self._held[level] if level < self.tree.root else (0,):
            inside = self.tree.units_inside(level, unit, machine)
            free = self._free.counts_inside(machine, inside)
            yield [count + held.get(index, 0) for index, count in zip(inside, free)]
