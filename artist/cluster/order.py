"""The order in which units are visited: what breaks ties, and nothing else.

The natural order is the tree's. Any other is as good: machines have no names, so
what a result owes to the order is noise, and `artist compare --permutations` measures it.
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

    __slots__ = ("_visited", "turns", "units")

    def __init__(self, tree: ClusterTree, permutation: int = 0) -> None:
        self._visited: list[npt.NDArray[np.int64] | None] = [None] * len(tree.levels)
        if permutation:
            for level in range(tree.machine, tree.root):
                rng = stream(permutation, f"visiting-order.{tree.levels[level].name}")
                self._visited[level] = rng.permutation(len(tree.levels[level]))
        self.units: list[Sequence[int]] = [range(len(level)) for level in tree.levels]
        """Per level: the units in the order of visits."""
        self.turns = self.units[:]
        """Per level and unit: when it is visited, from 0."""
        for level, visited in enumerate(self._visited):
            if visited is not None:
                self.units[level] = tuple(visited.tolist())
                self.turns[level] = tuple(np.argsort(visited).tolist())

    def sorted(self, level: int, units: range) -> Sequence[int]:
        """Some units in the order of visits."""
        if self._visited[level] is None:
            return units
        return sorted(units, key=self.turns[level].__getitem__)

    def as_visited(self, level: int, per_unit: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """An array over units, reordered to the order of visits."""
        visited = self._visited[level]
        return per_unit if visited is None else per_unit[visited]
