"""Which GPUs are free, with an index from "at least k free" to units.

Counts are numpy arrays, one per level, kept up to date from leaf to root. For
machines and everything outside them but the cluster itself, one bit set per free count (a
Python integer whose bit t stands for the unit visited at turn t) finds the first machine
with room in a few machine words of work, whatever the size of the cluster.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from artist.cluster.order import VisitingOrder
from artist.cluster.placement import Placement
from artist.cluster.tree import ClusterTree
from artist.errors import PolicyError

Counts = npt.NDArray[np.int32]


class FreeGpus:
    """Free GPUs of every unit. The engine owns the real one; policies work on a `copy`."""

    __slots__ = ("_buckets", "_free", "_order", "total", "tree")

    def __init__(self, tree: ClusterTree, order: VisitingOrder | None = None) -> None:
        self.tree = tree
        self._order = order or VisitingOrder(tree)
        self.total = tree.gpus
        self._free: list[Counts] = [np.array(level.gpus, dtype=np.int32) for level in tree.levels]
        self._buckets: list[list[int]] = [
            self._sort(index) if tree.machine <= index < tree.root else []
            for index in range(len(tree.levels))
        ]

    def copy(self) -> FreeGpus:
        """An independent copy."""
        twin = FreeGpus.__new__(FreeGpus)
        twin.tree = self.tree
        twin._order = self._order
        twin.total = self.total
        twin._free = [counts.copy() for counts in self._free]
        twin._buckets = [bits.copy() for bits in self._buckets]
        return twin

    def counts(self, level: int) -> Counts:
        """Free GPUs per unit of a level, read-only."""
        view = self._free[level].view()
        view.flags.writeable = False
        return view

    def index_is_true(self, level: int) -> bool:
        """Whether the bit sets of a level (machine or outer) say the same as its counts."""
        if level == self.tree.root:
            return self.total == int(self._free[level][0])
        return self._sort(level) == self._buckets[level]

    def of(self, level: int, unit: int) -> int:
        """Free GPUs of one unit."""
        return int(self._free[level][unit])

    def at_least(self, level: int, gpus: int) -> Iterator[int]:
        """The units of a level (machine or outer) with at least `gpus` free, as visited."""
        found = 0
        for bits in self._sized(level, gpus):
            found |= bits
        while found:
            yield self._order.unit(level, (found & -found).bit_length() - 1)
            found &= found - 1

    def turn(self, level: int, unit: int) -> int:
        """When a unit is visited among those of its level: ties go to the smallest turn."""
        return self._order.turn(level, unit)

    def fits_one(self, level: int, gpus: int) -> bool:
        """Whether some unit of a level (machine or outer) has at least `gpus` free."""
        return any(self._sized(level, gpus))

    def best_fit(self, level: int, gpus: int) -> int | None:
        """The unit with the fewest free GPUs that are at least `gpus`; the first among equals."""
        for bits in self._sized(level, gpus):
            if bits:
                return self._order.unit(level, (bits & -bits).bit_length() - 1)
        return None

    def first_fit(self, level: int, gpus: int) -> int | None:
        """The first unit with at least `gpus` free."""
        return next(self.at_least(level, gpus), None)

    def has(self, placement: Placement) -> bool:
        """Whether every GPU of a placement is free."""
        free = self._free[0]
        return all(
            free[leaf] >= count
            for leaf, count in zip(placement.leaves, placement.counts, strict=True)
        )

    def claim(self, placement: Placement) -> None:
        """Take GPUs.

        Raises:
            PolicyError: a leaf does not exist or has too few free GPUs; nothing is changed.
        """
        free = self._free[0]
        for leaf, count in zip(placement.leaves, placement.counts, strict=True):
            if not 0 <= leaf < len(free) or count < 1 or free[leaf] < count:
                available = int(free[leaf]) if 0 <= leaf < len(free) else 0
                raise PolicyError(
                    f"{count} GPUs of {self.tree.levels[0].name} {leaf} claimed, "
                    f"but {available} are free there"
                )
        self._move(placement, -1)

    def release(self, placement: Placement) -> None:
        """Give GPUs back.

        Raises:
            PolicyError: a leaf does not exist or has fewer GPUs held; nothing is changed.
        """
        free, gpus = self._free[0], self.tree.levels[0].gpus
        for leaf, count in zip(placement.leaves, placement.counts, strict=True):
            if not 0 <= leaf < len(gpus) or count < 1 or free[leaf] + count > gpus[leaf]:
                held = gpus[leaf] - int(free[leaf]) if 0 <= leaf < len(gpus) else 0
                raise PolicyError(
                    f"{count} GPUs of {self.tree.levels[0].name} {leaf} released, "
                    f"but {held} are held there"
                )
        self._move(placement, +1)

    def _sort(self, level: int) -> list[int]:
        """Bit sets of the units with exactly 0, 1, 2, ... free GPUs, from the counts."""
        counts = self._free[level]
        found = [0] * (self.tree.largest(level) + 1)
        for size in np.unique(counts).tolist():
            found[size] = _bits(self._order.as_visited(level, counts == size))
        return found

    def _sized(self, level: int, gpus: int) -> list[int]:
        """Bit sets of the units with exactly `gpus`, `gpus` + 1, ... free."""
        if level == self.tree.root:
            return [int(self.total >= gpus)]
        return self._buckets[level][gpus:]

    def _move(self, placement: Placement, sign: int) -> None:
        tree = self.tree
        for leaf, count in zip(placement.leaves, placement.counts, strict=True):
            change = sign * count
            self.total += change
            unit = leaf
            for index, level in enumerate(tree.levels):
                counts = self._free[index]
                before = int(counts[unit])
                counts[unit] = before + change
                if tree.machine <= index < tree.root:
                    buckets = self._buckets[index]
                    bit = 1 << self._order.turn(index, unit)
                    buckets[before] ^= bit
                    buckets[before + change] ^= bit
                if level.parent:
                    unit = level.parent[unit]


def _bits(mask: npt.NDArray[np.bool_]) -> int:
    """A mask as a Python integer, element 0 in bit 0."""
    return int.from_bytes(np.packbits(mask, bitorder="little").tobytes(), "little")
