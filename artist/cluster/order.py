"""The order in which units are visited: what breaks ties, and nothing else.

The natural order is the tree's. Any other is as good: machines have no names, so
what a result owes to the order is noise, and `artist compare --permutations` measures it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from artist.cluster.tree import ClusterTree
from artist.rng import stream


class VisitingOrder:
    """Turn of each unit among those of its level; permutation 0 is the natural order.

    Other permutations shuffle machines and everything outside them, over the whole cluster.
    """

    __slots__ = ("_turns", "_units", "_visited")

    def __init__(self, tree: ClusterTree, permutation: int = 0) -> None:
        self._visited: list[npt.NDArray[np.int64] | None] = [None] * len(tree.levels)
        if permutation:
            for level in range(tree.machine, tree.root):
                rng = stream(permutation, f"visiting-order.{tree.levels[level].name}")
                self._visited[level] = rng.permutation(len(tree.levels[level]))
        self._units = [None if v is None else tuple(v.tolist()) for v in self._visited]
        self._turns = [None if v is None else tuple(np.argsort(v).tolist()) for v in self._visited]

    def turn(self, level: int, unit: int) -> int:
        """When a unit is visited, from 0."""
        turns = self._turns[level]
        return unit if turns is None else turns[unit]

    def unit(self, level: int, turn: int) -> int:
        """The unit visited at a turn."""
        units = self._units[level]
        return turn if units is None else units[turn]

    def as_visited(self, level: int, per_unit: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """An array over units, reordered to the order of visits."""
        visited = self._visited[level]
        return per_unit if visited is None else per_unit[visited]
