"""The visiting order of units, which breaks ties and decides nothing else, and an index by it.

The natural order is the tree's own. Machines have no names, so every other order is equally good. A
difference between the results of two orders is therefore noise; `artist compare --permutations`
measures it.

The index of a level (`LevelIndex`) has

- the free GPUs of each unit (`counts`);
- one bit set per free count (`buckets`): a Python integer whose bit t stands for the unit visited
  at turn t;
- a bit set of the free counts that occur (`sizes`).

Bit sets find the first unit with room in a few machine operations, even among very many units.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from copy import copy
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from artist.cluster.tree import ClusterTree
from artist.rng import stream

UnitCounts: TypeAlias = "list[int] | array[int]"
"""The free GPUs of each unit. Lists are faster to read and write, arrays are faster to copy."""

# Up to this many units, counts are a list. Measured under `las` and `dally`, whose contests copy
# the counts: with 32 leaves lists save 4 % of the compiled loop, with 128 nothing, with 256 they
# cost 5 %.
_FEW_UNITS: Final = 64


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
        """This order on a tree with the same units and other numbers of GPUs."""
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
        """(GPUs, units with this many as a bit set of turns), for each size of a level's units."""
        if level not in self._by_size:
            sets: dict[int, int] = {}
            for turn, gpus in zip(self.turns[level], self._tree.levels[level].gpus, strict=True):
                sets[gpus] = sets.get(gpus, 0) | 1 << turn
            self._by_size[level] = sorted(sets.items())
        return self._by_size[level]


class LevelIndex:
    """Counts and bit sets of one level. Only levels from machines outward have bit sets.

    By unit, `outer` holds the unit around it, and `turns` its place in the visiting order.
    """

    __slots__ = ("buckets", "counts", "outer", "sizes", "turns")

    def __init__(
        self,
        counts: UnitCounts,
        buckets: list[int],
        sizes: int,
        outer: tuple[int, ...],
        turns: tuple[int, ...],
    ) -> None:
        self.counts = counts
        self.buckets = buckets
        self.sizes = sizes
        self.outer = outer
        self.turns = turns

    @classmethod
    def of(
        cls, tree: ClusterTree, order: VisitingOrder, level: int, gpus: Sequence[int]
    ) -> LevelIndex:
        """The index of a level with `gpus` free in each unit."""
        counts: UnitCounts = list(gpus) if len(gpus) <= _FEW_UNITS else array("i", gpus)
        buckets = []
        if tree.machine <= level < tree.root:
            buckets = _sorted_by_count(order, level, counts, tree.largest(level))
        return cls(
            counts, buckets, _occurring(buckets), tree.levels[level].parent, order.turns[level]
        )

    def copy(self) -> LevelIndex:
        """An independent copy."""
        counts, buckets = self.counts[:], self.buckets[:]
        return LevelIndex(counts, buckets, self.sizes, self.outer, self.turns)

    def refile(self, unit: int, before: int, after: int) -> None:
        """Move a unit's bit to the bit set of its new count."""
        bit, buckets = 1 << self.turns[unit], self.buckets
        left = buckets[before] = buckets[before] ^ bit
        if not left:
            self.sizes ^= 1 << before
        if not buckets[after]:
            self.sizes ^= 1 << after
        buckets[after] ^= bit

    def with_room(self, gpus: int) -> int:
        """The units with at least `gpus` free, as a bit set."""
        turns = 0
        for bits in self.buckets[gpus:]:
            turns |= bits
        return turns

    def is_true(self, order: VisitingOrder, level: int) -> bool:
        """Whether the bit sets agree with the counts."""
        buckets = _sorted_by_count(order, level, self.counts, len(self.buckets) - 1)
        return buckets == self.buckets and _occurring(buckets) == self.sizes


def lowest(bits: int) -> int:
    """The position of the lowest bit that is set."""
    return (bits & -bits).bit_length() - 1


def _sorted_by_count(
    order: VisitingOrder, level: int, counts: UnitCounts, largest: int
) -> list[int]:
    """Bit sets of the units with exactly 0, 1, 2, ... `largest` free GPUs."""
    per_unit = np.asarray(counts, dtype=np.int32)
    buckets = [0] * (largest + 1)
    for size in np.flatnonzero(np.bincount(per_unit)).tolist():  # `unique` imports numpy.ma
        buckets[size] = _bits(order.as_visited(level, per_unit == size))
    return buckets


def _occurring(buckets: list[int]) -> int:
    """The free counts that occur, as a bit set."""
    return sum(1 << size for size, bits in enumerate(buckets) if bits)


def _bits(mask: npt.NDArray[np.bool_]) -> int:
    """A mask as a Python integer, element 0 in bit 0."""
    return int.from_bytes(np.packbits(mask, bitorder="little").tobytes(), "little")
