"""Which GPUs are free, and an index that finds units with at least k free GPUs.

Free GPUs are counted per level. Every level from machines outward, except the cluster itself, also
has bit sets (`LevelIndex`). A change updates them from the leaves to the root.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from artist.cluster.host_resources import Amounts, FreeHosts, Needy, need
from artist.cluster.placement import Placement
from artist.cluster.tree import ClusterTree
from artist.cluster.visiting_order import LevelIndex, VisitingOrder, lowest
from artist.errors import PolicyError

Counts: TypeAlias = npt.NDArray[np.int32]


class Unit(NamedTuple):
    """A unit of the cluster: the index of its level, and its number in that level."""

    level: int
    unit: int


class FreeGpus:
    """The free GPUs of every unit. The engine owns the original; policies change only copies.

    `hosts` holds the free CPU cores and memory if they matter in the run, else None. A run whose
    jobs ask for shares of GPUs has `SharedGpus` (`gpu_shares.py`).
    """

    __slots__ = ("_levels", "_order", "hosts", "total", "tree")

    def __init__(self, tree: ClusterTree, visiting_order: VisitingOrder | None = None) -> None:
        self.tree = tree
        self._order = order = visiting_order or VisitingOrder(tree)
        self.total = tree.gpus
        self.hosts: FreeHosts | None = None
        self._levels = [
            LevelIndex.of(tree, order, index, level.gpus) for index, level in enumerate(tree.levels)
        ]

    def copy(self) -> FreeGpus:
        """An independent copy."""
        twin = FreeGpus.__new__(FreeGpus)
        twin.tree = self.tree
        twin._order = self._order
        twin.total = self.total
        twin._levels = [index.copy() for index in self._levels]
        twin.hosts = None if self.hosts is None else self.hosts.copy()
        return twin

    def become(self, other: FreeGpus) -> None:
        """Take over the contents of another object, which may not be used afterwards."""
        self.tree, self._order, self.total = other.tree, other._order, other.total
        self._levels, self.hosts = other._levels, other.hosts

    @property
    def room(self) -> int:
        """The largest demand (`Job.demand`) that these GPUs might serve."""
        return self.total

    def unfed(self) -> FreeGpus:
        """The same free GPUs, as if CPU cores, memory and MIG modes did not matter.

        It is valid until this object changes, and must not be changed itself.
        """
        twin = copy(self)
        twin.hosts = None
        return twin

    def fed(self, job: Needy) -> FreeGpus:
        """The free GPUs that a job could use, given the CPU cores and memory of their machines.

        This is the object itself, unless some machine lacks something for the job. Then it is a
        copy without `hosts` and without the GPUs that the job could not use. The tree of the copy
        has only the GPUs that the job could use in the empty cluster.
        """
        hosts = self.hosts
        if hosts is None:
            return self
        key = need(job)
        if key not in hosts.known:
            tree, most = hosts.tree_for(job), hosts.fed(job)
            all_fed = most is None or not (self.counts(tree.machine) > most).any()
            same = tree is self.tree and all_fed
            hosts.known[key] = None if same or most is None else self._at_most(tree, most)
        return hosts.known[key] or self

    def _at_most(self, tree: ClusterTree, per_machine: Amounts) -> FreeGpus:
        """A copy without `hosts`, in which each machine has at most this many free GPUs.

        `tree` has the same units with fewer GPUs.
        """
        idle = self.counts(tree.machine)
        counts = np.minimum(idle, per_machine).astype(np.int32)
        leaves = self._trimmed(idle - counts) if tree.machine else counts
        twin = FreeGpus.__new__(FreeGpus)
        twin.tree = tree
        twin._order = order = self._order if tree is self.tree else self._order.on(tree)
        twin.total = int(counts.sum())
        twin.hosts = None
        twin._levels = []
        for level in range(len(tree.levels)):
            if level:
                leaves = np.add.reduceat(leaves, tree.levels[level].first_child[:-1])
            twin._levels.append(LevelIndex.of(tree, order, level, leaves.tolist()))
        return twin

    def _trimmed(self, fewer: Counts) -> Counts:
        """Free GPUs per leaf, with `fewer` of each machine: its last leaves lose them first."""
        leaves = self.counts(0).copy()
        first = self.tree.first_leaf[self.tree.machine]
        for machine in np.flatnonzero(fewer).tolist():
            left = int(fewer[machine])
            for leaf in range(first[machine + 1] - 1, first[machine] - 1, -1):
                taken = min(left, int(leaves[leaf]))
                leaves[leaf] -= taken
                left -= taken
        return leaves

    def counts(self, level: int) -> Counts:
        """Free GPUs per unit of a level now, read-only. Ask again after a change."""
        counts = np.asarray(self._levels[level].counts, dtype=np.int32)
        counts.flags.writeable = False
        return counts

    @property
    def leaves(self) -> Sequence[int]:
        """Free GPUs per leaf now, read-only. Ask again after a change."""
        counts = self._levels[0].counts
        return tuple(counts) if isinstance(counts, list) else memoryview(counts).toreadonly()

    def index_is_true(self, level: int) -> bool:
        """Whether the bit sets of a level (machine or outer) agree with its counts."""
        if level == self.tree.root:
            return self.total == self._levels[level].counts[0]
        return self._levels[level].is_true(self._order, level)

    def of(self, level: int, unit: int) -> int:
        """Free GPUs of one unit."""
        return self._levels[level].counts[unit]

    def counts_inside(self, level: int, units: range) -> list[int]:
        """Free GPUs of consecutive units."""
        return list(self._levels[level].counts[units.start : units.stop])

    def children(self, level: int, unit: int) -> tuple[Sequence[int], list[int]]:
        """The children of a unit, in visiting order, and the free GPUs of each."""
        inside = self.tree.children(level, unit)
        visited = self._order.sorted(level - 1, inside)
        free = self._levels[level - 1].counts
        if visited is inside:
            return inside, list(free[inside.start : inside.stop])
        return visited, [free[child] for child in visited]

    def everything(self, level: int, unit: int) -> dict[int, int]:
        """All free GPUs of a unit: leaf -> number, for the leaves that have any."""
        first, counts = self.tree.first_leaf[level], self._levels[0].counts
        return {leaf: counts[leaf] for leaf in range(first[unit], first[unit + 1]) if counts[leaf]}

    def best_child(self, level: int, unit: int, gpus: int) -> int | None:
        """The child of a unit that `best_fit` would choose among its children, or None."""
        first = self.tree.levels[level].first_child
        inside = self._levels[level - 1]
        free, turns = inside.counts, inside.turns
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
        """The units with at least `gpus` free GPUs that are not idle, in visiting order.

        The level is that of machines or an outer one, but not the root.
        """
        return self._visited(level, self._with_room(level, gpus) & ~self.idle(level))

    def tightest(self, level: int, gpus: int) -> Iterator[int]:
        """The units of a level (machine or outer) with at least `gpus` free, fewest free first.

        Units with equally many come in visiting order.
        """
        if level == self.tree.root:
            yield from self._visited(level, self._with_room(level, gpus))
            return
        for turns in self._levels[level].buckets[gpus:]:
            yield from self._visited(level, turns)

    def turn(self, level: int, unit: int) -> int:
        """The turn of a unit in the visiting order of its level. Ties go to the smallest turn."""
        return self._levels[level].turns[unit]

    def fits_one(self, level: int, gpus: int, inside: Unit | None = None) -> bool:
        """Whether some unit of a level (machine or outer) has at least `gpus` free.

        `inside` as in `at_least`.
        """
        if inside is not None:
            return self.best_fit(level, gpus, inside) is not None
        if level == self.tree.root:
            return self.total >= gpus
        return self._levels[level].sizes >> gpus > 0

    def best_fit(self, level: int, gpus: int, inside: Unit | None = None) -> int | None:
        """The unit with the fewest free GPUs, but at least `gpus`; the first among equals.

        None if no unit has that many. `inside` as in `at_least`.
        """
        if level == self.tree.root:
            return 0 if self.total >= gpus else None
        if inside is None:
            index = self._levels[level]
            sizes = index.sizes >> gpus
            if not sizes:
                return None
            return self._order.units[level][lowest(index.buckets[gpus + lowest(sizes)])]
        return self.fit_among(level, gpus, self._order.inside(level, *inside))

    def fit_among(self, level: int, gpus: int, among: int, *, most: bool = False) -> int | None:
        """`best_fit` among the units of a bit set of turns; with `most`, the unit with most free.

        `level` as in `busy`.
        """
        sizes, buckets = self._levels[level].sizes >> gpus, self._levels[level].buckets
        while sizes:
            size = sizes.bit_length() - 1 if most else lowest(sizes)
            turns = buckets[gpus + size] & among
            if turns:
                return self._order.units[level][lowest(turns)]
            sizes ^= 1 << size
        return None

    def idle(self, level: int) -> int:
        """The units whose GPUs are all free, as a bit set of turns; `level` as in `busy`."""
        turns = 0
        for size, units in self._order.by_size(level):
            turns |= self._levels[level].buckets[size] & units
        return turns

    def first_fit(self, level: int, gpus: int, inside: Unit | None = None) -> int | None:
        """The first unit with at least `gpus` free, or None; `inside` as in `at_least`."""
        return next(self.at_least(level, gpus, inside), None)

    def has(self, placement: Placement, job: Needy | None = None) -> bool:
        """Whether every GPU of a placement is free, and its machines have what the job needs."""
        free = self._levels[0].counts
        if any(free[leaf] < count for leaf, count in zip(placement.leaves, placement.counts)):
            return False
        return self.hosts is None or job is None or self.hosts.shortage(placement, job) is None

    def claim(self, placement: Placement, job: Needy | None = None) -> None:
        """Take the GPUs of a placement, and what the job needs of `hosts` there.

        Raises:
            PolicyError: a leaf does not exist or has too few free GPUs, or its machine too few
                cores or too little memory; nothing is changed.
        """
        free = self._levels[0].counts
        for leaf, count in zip(placement.leaves, placement.counts):
            if not 0 <= leaf < len(free) or count < 1 or free[leaf] < count:
                name = f"{self.tree.levels[0].name} {leaf}"
                if count < 1:
                    raise PolicyError(f"a placement with {count} GPUs of {name}; each needs 1")
                available = free[leaf] if 0 <= leaf < len(free) else 0
                raise PolicyError(f"{count} GPUs of {name} claimed, but {available} are free there")
        if self.hosts is not None:
            self.hosts.claim(placement, job)
        self._move(placement, -1)

    def release(self, placement: Placement, job: Needy | None = None) -> None:
        """Give the GPUs of a placement back, and what the job needed of `hosts` there.

        Raises:
            PolicyError: a leaf does not exist or fewer of its GPUs are held; nothing is changed.
        """
        free, gpus = self._levels[0].counts, self.tree.levels[0].gpus
        for leaf, count in zip(placement.leaves, placement.counts):
            if not 0 <= leaf < len(gpus) or count < 1 or free[leaf] + count > gpus[leaf]:
                held = gpus[leaf] - free[leaf] if 0 <= leaf < len(gpus) else 0
                raise PolicyError(
                    f"{count} GPUs of {self.tree.levels[0].name} {leaf} released, "
                    f"but {held} are held there"
                )
        if self.hosts is not None:
            self.hosts.release(placement, job)
        self._move(placement, +1)

    def _with_room(self, level: int, gpus: int) -> int:
        """The units with at least `gpus` free, as a bit set of their turns."""
        if level == self.tree.root:
            return int(self.total >= gpus)
        return self._levels[level].with_room(gpus)

    def _visited(self, level: int, turns: int) -> Iterator[int]:
        """The units of a bit set of turns, in visiting order."""
        units = self._order.units[level]
        while turns:
            yield units[lowest(turns)]
            turns &= turns - 1

    def _move(self, placement: Placement, sign: int) -> None:
        """Change the counts of the leaves and of every unit around them, by `sign` x GPUs."""
        leaves, counts = placement
        if len(leaves) == 1:
            level, unit, change = 0, leaves[0], sign * counts[0]
        else:
            level, unit, change = self._move_inside(placement, sign)
        for index in self._levels[level:]:
            before = index.counts[unit]
            index.counts[unit] = after = before + change
            if index.buckets:
                index.refile(unit, before, after)
            if index.outer:  # the root has no outer unit
                unit = index.outer[unit]
        self.total += change

    def _move_inside(self, placement: Placement, sign: int) -> tuple[int, int, int]:
        """Change the levels on which the placement has several units.

        Each unit is changed once, not once per leaf inside it. Returns the innermost level on which
        the placement has one unit, that unit, and the change of its count.
        """
        level = 0
        units, changes = list(placement.leaves), [sign * count for count in placement.counts]
        while len(units) > 1:
            index = self._levels[level]
            counts, outer, indexed = index.counts, index.outer, bool(index.buckets)
            around: list[int] = []
            sums: list[int] = []
            last, total = outer[units[0]], 0
            for unit, change in zip(units, changes):
                before = counts[unit]
                counts[unit] = after = before + change
                if indexed:
                    index.refile(unit, before, after)
                if outer[unit] != last:
                    around.append(last)
                    sums.append(total)
                    last, total = outer[unit], 0
                total += change
            around.append(last)
            sums.append(total)
            units, changes = around, sums
            level += 1
        return level, units[0], changes[0]
