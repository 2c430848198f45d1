"""The visiting order: in which order units are looked at. It breaks ties, and nothing else.

The natural order is the tree's. Any other order is as good, since machines have no names. So a
difference between two visiting orders is noise, and `artist compare --permutations` measures it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from artist.cluster.tree import ClusterTree
from artist.rng import stream


class VisitingOrder:
    """Turn of each unit among those of its level; permutation 0 is the natural order.

    Other permutations shuffle machines and everything outside them, over the whole cluster.
    """

    __slots__ = ("_inside", "_tree", "_visited", "turns", "units")

    def __init__(self, tree: ClusterTree, permutation: int = 0) -> None:
        self._tree = tree
        self._inside: dict[tuple[int, int, int], int] = {}
        self._visited: list[npt.NDArray[np.int64] | None] = [None] * len(tree.levels)
        if permutation:
            for level in range(tree.machine, tree.root):
                rng = stream(permutation, f"visiting-order.{tree.levels[level].name}")
                self._visited[level] = rng.permutation(len(tree.levels[level]))
        self.units: list[Sequence[int]] = [range(len(level)) for level in tree.levels]
        """Per level: the units in visiting order."""
        self.turns = self.units[:]
        """Per level and unit: when it is visited, from 0."""
        for level, visited in enumerate(self._visited):
            if visited is not None:
                self.units[level] = tuple(visited.tolist())
                self.turns[level] = tuple(np.argsort(visited).tolist())

    def sorted(self, level: int, units: range) -> Sequence[int]:
        """Some units in visiting order."""
        if self._visited[level] is None:
            return units
        return sorted(units, key=self.turns[level].__getitem__)

    def as_visited(self, level: int, per_unit: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """An array over units, reordered to the order of visits."""
        visited = self._visited[level]
        return per_unit if visited is None else per_unit[visited]

    def inside(self, level: int, outer: int, unit: int) -> int:
        """The turns of the units of a level that lie inside a unit of an outer level, as bits."""
        key = (level, outer, unit)
        if key not in self._inside:
            turns, units = self.turns[level], self._tree.units_inside(outer, unit, level)
            self._inside[key] = sum(1 << turns[inner] for inner in units)
        return self._inside[key]
