"""The visiting order: the order in which units are visited to break ties. It decides nothing else.

The natural order is the tree's own. Machines have no names, so every other order is as good. A
difference between two visiting orders is therefore noise; `artist compare --permutations`
measures it.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import numpy as np
import numpy.typing as npt

from artist.cluster.tree import ClusterTree
from artist.rng import stream


class VisitingOrder:
    """The turn of each unit: its place in the visiting order of its level, from 0.

    Permutation 0 is the natural order. Every other permutation shuffles the machines, and each
    level outside machines, over the whole cluster. Units inside machines keep the natural order.
    """

    __slots__ = ("_by_size", "_inside", "_tree", "_visited", "turns", "units")

    def __init__(self, tree: ClusterTree, permutation: int = 0) -> None:
        self._tree = tree
        self._inside: dict[tuple[int, int, int], int] = {}
        self._by_size: dict[int, list[tuple[int, int]]] = {}
        self._visited: list[npt.NDArray[np.int64] | None] = [None] * len(tree.levels)
        if permutation:
            for level in range(tree.machine, tree.root):
                rng = stream(permutation, f"visiting-order.{tree.levels[level].name}")
                self._visited[level] = rng.permutation(len(tree.levels[level]))
        self.units = [tuple(range(len(level))) for level in tree.levels]
        """The units of each level, in visiting order."""
        self.turns = self.units[:]
        """The turn of each unit of each level."""
        for level, visited in enumerate(self._visited):
            if visited is not None:
                self.units[level] = tuple(visited.tolist())
                self.turns[level] = tuple(np.argsort(visited).tolist())

    def on(self, tree: ClusterTree) -> VisitingOrder:
        """The same turns for a tree of the same units with other numbers of GPUs."""
        twin = copy(self)
        twin._tree, twin._by_size = tree, {}
        return twin

    def sorted(self, level: int, units: range) -> Sequence[int]:
        """These units of a level, in visiting order."""
        if self._visited[level] is None:
            return units
        return sorted(units, key=self.turns[level].__getitem__)

    def as_visited(self, level: int, per_unit: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """An array over the units of a level, reordered by turn."""
        visited = self._visited[level]
        return per_unit if visited is None else per_unit[visited]

    def inside(self, level: int, outer: int, unit: int) -> int:
        """The units of `level` inside a unit of level `outer`, as a bit set of their turns."""
        key = (level, outer, unit)
        if key not in self._inside:
            turns, units = self.turns[level], self._tree.units_inside(outer, unit, level)
            self._inside[key] = sum(1 << turns[inner] for inner in units)
        return self._inside[key]

    def by_size(self, level: int) -> list[tuple[int, int]]:
        """Each size of units of a level, in GPUs, and these units as a bit set of their turns."""
        if level not in self._by_size:
            sets: dict[int, int] = {}
            for turn, gpus in zip(self.turns[level], self._tree.levels[level].gpus, strict=True):
                sets[gpus] = sets.get(gpus, 0) | 1 << turn
            self._by_size[level] = sorted(sets.items())
        return self._by_size[level]
