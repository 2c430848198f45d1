"""Which GPUs are free, and an index that finds units with at least k free GPUs.

Free GPUs are counted in flat arrays, one per level. A change updates them from the leaves to the
root. The index has two parts, for every level from machines outward except the cluster itself:

- one bit set per free count: a Python integer whose bit t stands for the unit visited at turn t;
- a bit set of the free counts that occur (`sizes`).

Together they find the first machine with room in a few machine words of work, whatever the size of
the cluster.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from artist.cluster.placement import Placement
from artist.cluster.tree import ClusterTree
from artist.cluster.visiting_order import VisitingOrder
from artist.errors import PolicyError

Counts: TypeAlias = npt.NDArray[np.int32]


class Unit(NamedTuple):
    """A unit of the cluster: the index of its level, and its number in that level."""

    level: int
    unit: int


class FreeGpus:
    """The free GPUs of every unit. The engine owns the real one; policies work on a `copy`."""

    __slots__ = ("_buckets", "_free", "_order", "_sizes", "_upward", "total", "tree")

    def __init__(self, tree: ClusterTree, visiting_order: VisitingOrder | None = None) -> None:
        self.tree = tree
        self._order = visiting_order or VisitingOrder(tree)
        self.total = tree.gpus
        self._free = [array("i", level.gpus) for level in tree.levels]
        self._buckets = [
            self._sort(index) if tree.machine <= index < tree.root else []
            for index in range(len(tree.levels))
        ]
        self._sizes = [_sizes(buckets) for buckets in self._buckets]
        self._upward = self._levels()

    def copy(self) -> FreeGpus:
        """An independent copy."""
        twin = FreeGpus.__new__(FreeGpus)
        twin.tree = self.tree
        twin._order = self._order
        twin.total = self.total
        twin._free = [counts[:] for counts in self._free]
        twin._buckets = [bits[:] for bits in self._buckets]
        twin._sizes = self._sizes[:]
        twin._upward = twin._levels()
        return twin

    def counts(self, level: int) -> Counts:
        """Free GPUs per unit of a level, read-only."""
        view = np.frombuffer(self._free[level], dtype=np.int32)
        view.flags.writeable = False
        return view

    @property
    def leaves(self) -> Sequence[int]:
        """Free GPUs per leaf, read-only."""
        return memoryview(self._free[0]).toreadonly()

    def index_is_true(self, level: int) -> bool:
        """Whether the bit sets of a level (machine or outer) agree with its counts."""
        if level == self.tree.root:
            return self.total == self._free[level][0]
        buckets = self._sort(level)
        return buckets == self._buckets[level] and _sizes(buckets) == self._sizes[level]

    def of(self, level: int, unit: int) -> int:
        """Free GPUs of one unit."""
        return self._free[level][unit]

    def children(self, level: int, unit: int) -> tuple[Sequence[int], list[int]]:
        """The children of a unit, in visiting order, and the free GPUs of each."""
        inside = self.tree.children(level, unit)
        visited = self._order.sorted(level - 1, inside)
        free = self._free[level - 1]
        if visited is inside:
            return inside, free[inside.start : inside.stop].tolist()
        return visited, [free[child] for child in visited]

    def everything(self, level: int, unit: int) -> dict[int, int]:
        """All free GPUs of a unit: leaf -> number, for the leaves that have any."""
        inside = self.tree.leaves(level, unit)
        counts = self._free[0][inside.start : inside.stop]
        return {leaf: count for leaf, count in zip(inside, counts, strict=True) if count}

    def best_child(self, level: int, unit: int, gpus: int) -> int | None:
        """The child of a unit that `best_fit` would choose among the children, or None."""
        first = self.tree.levels[level].first_child
        free, turns = self._free[level - 1], self._order.turns[level - 1]
        best, least = None, 0
        for child in range(first[unit], first[unit + 1]):
            count = free[child]
            if count >= gpus and (
                best is None or count < least or (count == least and turns[child] < turns[best])
            ):
                best, least = child, count
        return best

    def at_least(self, level: int, gpus: int, inside: Unit | None = None) -> Iterator[int]:
        """The units of a level (machine or outer) with at least `gpus` free, in visiting order.

        With `inside`, only units inside that unit, which may be of the same level or an outer one.
        """
        turns = self._with_room(level, gpus)
        if inside is not None:
            turns &= self._order.inside(level, *inside)
        return self._visited(level, turns)

    def busy(self, level: int, gpus: int) -> Iterator[int]:
        """The units with at least `gpus` free of which some GPUs are not, in visiting order.

        The level is a machine's or an outer one, but not the root.
        """
        return self._visited(level, self._with_room(level, gpus) & ~self.idle(level))

    def turn(self, level: int, unit: int) -> int:
        """The turn of a unit in the visiting order of its level; ties go to the smallest turn."""
        return self._order.turns[level][unit]

    def fits_one(self, level: int, gpus: int, inside: Unit | None = None) -> bool:
        """Whether some unit of a level (machine or outer) has at least `gpus` free.

        `inside` as in `at_least`.
        """
        if inside is not None:
            return self.best_fit(level, gpus, inside) is not None
        if level == self.tree.root:
            return self.total >= gpus
        return self._sizes[level] >> gpus > 0

    def best_fit(self, level: int, gpus: int, inside: Unit | None = None) -> int | None:
        """Of the units with at least `gpus` free, the one with the fewest; the first among equals.

        None if no unit has so many. `inside` as in `at_least`.
        """
        if level == self.tree.root:
            return 0 if self.total >= gpus else None
        sizes = self._sizes[level] >> gpus
        buckets, units = self._buckets[level], self._order.units[level]
        if inside is None:
            return units[_lowest(buckets[gpus + _lowest(sizes)])] if sizes else None
        return self.fit_among(level, gpus, self._order.inside(level, *inside))

    def fit_among(self, level: int, gpus: int, among: int, *, most: bool = False) -> int | None:
        """As `best_fit` among the units of a bit set of turns; with `most` the one with most free.

        The level as in `busy`.
        """
        sizes, buckets = self._sizes[level] >> gpus, self._buckets[level]
        while sizes:
            size = sizes.bit_length() - 1 if most else _lowest(sizes)
            turns = buckets[gpus + size] & among
            if turns:
                return self._order.units[level][_lowest(turns)]
            sizes ^= 1 << size
        return None

    def idle(self, level: int) -> int:
        """The units of which all GPUs are free, as a bit set of turns; the level as in `busy`."""
        turns = 0
        for size, units in self._order.by_size(level):
            turns |= self._buckets[level][size] & units
        return turns

    def first_fit(self, level: int, gpus: int, inside: Unit | None = None) -> int | None:
        """The first unit with at least `gpus` free, or None; `inside` as in `at_least`."""
        return next(self.at_least(level, gpus, inside), None)

    def has(self, placement: Placement) -> bool:
        """Whether every GPU of a placement is free."""
        free = self._free[0]
        for leaf, count in zip(placement.leaves, placement.counts, strict=True):
            if free[leaf] < count:
                return False
        return True

    def claim(self, placement: Placement) -> None:
        """Take the GPUs of a placement.

        Raises:
            PolicyError: a leaf does not exist or has too few free GPUs; nothing is changed.
        """
        free = self._free[0]
        for leaf, count in zip(placement.leaves, placement.counts, strict=True):
            if not 0 <= leaf < len(free) or count < 1 or free[leaf] < count:
                available = free[leaf] if 0 <= leaf < len(free) else 0
                raise PolicyError(
                    f"{count} GPUs of {self.tree.levels[0].name} {leaf} claimed, "
                    f"but {available} are free there"
                )
        self._move(placement, -1)

    def release(self, placement: Placement) -> None:
        """Give the GPUs of a placement back.

        Raises:
            PolicyError: a leaf does not exist or fewer of its GPUs are held; nothing is changed.
        """
        free, gpus = self._free[0], self.tree.levels[0].gpus
        for leaf, count in zip(placement.leaves, placement.counts, strict=True):
            if not 0 <= leaf < len(gpus) or count < 1 or free[leaf] + count > gpus[leaf]:
                held = gpus[leaf] - free[leaf] if 0 <= leaf < len(gpus) else 0
                raise PolicyError(
                    f"{count} GPUs of {self.tree.levels[0].name} {leaf} released, "
                    f"but {held} are held there"
                )
        self._move(placement, +1)

    def _sort(self, level: int) -> list[int]:
        """Bit sets of the units with exactly 0, 1, 2, ... free GPUs, computed from the counts."""
        counts = self.counts(level)
        buckets = [0] * (self.tree.largest(level) + 1)
        for size in np.flatnonzero(np.bincount(counts)).tolist():  # `unique` imports numpy.ma
            buckets[size] = _bits(self._order.as_visited(level, counts == size))
        return buckets

    def _with_room(self, level: int, gpus: int) -> int:
        """The units with at least `gpus` free, as a bit set of their turns."""
        if level == self.tree.root:
            return int(self.total >= gpus)
        turns = 0
        for bits in self._buckets[level][gpus:]:
            turns |= bits
        return turns

    def _visited(self, level: int, turns: int) -> Iterator[int]:
        """The units of a bit set of turns, in visiting order."""
        units = self._order.units[level]
        while turns:
            yield units[_lowest(turns)]
            turns &= turns - 1

    def _levels(self) -> list[tuple[int, array[int], Sequence[int], list[int], Sequence[int]]]:
        """What a change of free GPUs touches, per level from the leaves up, without the root."""
        levels, parents, turns = range(self.tree.root), self.tree.parents, self._order.turns
        return list(zip(levels, self._free, parents, self._buckets, turns, strict=False))

    def _move(self, placement: Placement, sign: int) -> None:
        """Change the counts of the leaves and of every unit that holds them."""
        if len(placement.leaves) == 1:
            inner, unit, change = 0, placement.leaves[0], sign * placement.counts[0]
        else:
            inner, unit, change = self._move_inside(placement, sign)
        for level, counts, parent, buckets, turns in self._upward[inner:]:
            before = counts[unit]
            counts[unit] = after = before + change
            if buckets:
                self._refile(level, buckets, 1 << turns[unit], before, after)
            unit = parent[unit]
        self.total += change
        self._free[-1][0] = self.total

    def _refile(self, level: int, buckets: list[int], bit: int, before: int, after: int) -> None:
        """Move a unit's bit to the bit set of its new count."""
        left = buckets[before] = buckets[before] ^ bit
        if not left:
            self._sizes[level] ^= 1 << before
        if not buckets[after]:
            self._sizes[level] ^= 1 << after
        buckets[after] ^= bit

    def _move_inside(self, placement: Placement, sign: int) -> tuple[int, int, int]:
        """Change the levels on which the placement has several units.

        Each unit is changed once, not once per leaf inside it. Returns the innermost level on which
        the placement has one unit, that unit, and the change of its count.
        """
        units: Sequence[int] = placement.leaves
        changes: Sequence[int] = placement.counts
        for level, counts, parent, buckets, turns in self._upward:
            around: list[int] = []
            sums: list[int] = []
            last = -1
            for unit, change in zip(units, changes, strict=True):
                before = counts[unit]
                counts[unit] = after = before + sign * change
                if buckets:
                    self._refile(level, buckets, 1 << turns[unit], before, after)
                outer = parent[unit]
                if outer == last:
                    sums[-1] += change
                else:
                    around.append(outer)
                    sums.append(change)
                    last = outer
            units, changes = around, sums
            if len(units) == 1:
                break
        return level + 1, units[0], sign * changes[0]


def _lowest(bits: int) -> int:
    """The position of the lowest bit that is set."""
    return (bits & -bits).bit_length() - 1


def _sizes(buckets: Sequence[int]) -> int:
    """The free counts that occur, as a bit set."""
    return sum(1 << size for size, bits in enumerate(buckets) if bits)


def _bits(mask: npt.NDArray[np.bool_]) -> int:
    """A mask as a Python integer, element 0 in bit 0."""
    return int.from_bytes(np.packbits(mask, bitorder="little").tobytes(), "little")
