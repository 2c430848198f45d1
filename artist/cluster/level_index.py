"""The units of one level, found by how many of their GPUs are free.

A level has

- the free GPUs of each unit (`counts`);
- one bit set per free count (`buckets`): a Python integer whose bit t stands for the unit visited
  at turn t;
- a bit set of the free counts that occur (`sizes`).

Bit sets find the first unit with room in a few machine words of work, however many units there are.
"""

from __future__ import annotations

from array import array
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from artist.cluster.tree import ClusterTree
from artist.cluster.visiting_order import VisitingOrder

Counts: TypeAlias = "list[int] | array[int]"
"""The free GPUs of each unit: a list is read and written faster, an array copied faster."""

# Measured under `las` and `dally`, whose contests copy the counts: on 32 leaves lists spare 4 % of
# the compiled loop, on 128 nothing, on 256 they cost 5 %.
_FEW_UNITS: Final = 64


class LevelIndex:
    """Counts and bit sets of one level. Only levels from machines outward have bit sets.

    `outer` holds the unit around each unit, `turns` its place in the visiting order.
    """

    __slots__ = ("buckets", "counts", "outer", "sizes", "turns")

    def __init__(
        self,
        counts: Counts,
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
    def of_empty(cls, tree: ClusterTree, order: VisitingOrder, level: int) -> LevelIndex:
        """The index of a level whose GPUs are all free."""
        gpus = tree.levels[level].gpus
        counts: Counts = list(gpus) if len(gpus) <= _FEW_UNITS else array("i", gpus)
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


def _sorted_by_count(order: VisitingOrder, level: int, counts: Counts, largest: int) -> list[int]:
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
