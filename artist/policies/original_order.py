"""In which order the original simulator visits machines and sockets.

Dally's original program keeps units in a hash map that it rebuilds at every attempt from the
units with a free GPU, and takes the first one with room. Its results are chaotic in that order,
so it can be replaced by a seeded one: results over several orders tell a rule from an accident.

Source of the hash: `MultiKeyMap` and `AbstractHashedMap` of Apache Commons Collections 3.2
(`hash`, `checkCapacity`, `ensureCapacity`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np

from artist.cluster.state import FreeGpus
from artist.cluster.tree import ClusterTree
from artist.rng import stream

_WORD = 0xFFFFFFFF
_CAPACITY = 16
_LOAD = 0.75


class VisitOrder(Protocol):
    """The order in which units of a level are tried."""

    def first_fit(self, free: FreeGpus, level: int, gpus: int) -> int | None:
        """The first unit of a level with room."""
        ...


class HashOrder:
    """The original's own order."""

    def __init__(self, tree: ClusterTree) -> None:
        self._hashes = [unit_hashes(tree, level) for level in range(tree.machine + 1)]

    def first_fit(self, free: FreeGpus, level: int, gpus: int) -> int | None:
        """The first unit with room in the map of all units with a free GPU."""
        counts = free.counts(level)
        if not (counts >= gpus).any():
            return None
        units = counts.nonzero()[0].tolist()
        visited = hash_order(units, self._hashes[level])
        return next(unit for unit in visited if counts[unit] >= gpus)


class SeededOrder:
    """The machines in a random order, drawn once; sockets follow their machines."""

    def __init__(self, tree: ClusterTree, seed: int) -> None:
        machines = stream(seed, "machine-order").permutation(len(tree.levels[tree.machine]))
        self._orders = [machines]
        for level in range(tree.machine, 0, -1):
            inner = [unit for outer in self._orders[0] for unit in tree.children(level, outer)]
            self._orders.insert(0, np.array(inner))

    def first_fit(self, free: FreeGpus, level: int, gpus: int) -> int | None:
        """The first unit with room in that order."""
        order = self._orders[level]
        fits = free.counts(level)[order] >= gpus
        position = int(np.argmax(fits))
        return int(order[position]) if fits[position] else None


def visit_order(tree: ClusterTree, seed: int | None) -> VisitOrder:
    """The original's order, or a seeded one."""
    return HashOrder(tree) if seed is None else SeededOrder(tree, seed)


def unit_hashes(tree: ClusterTree, level: int) -> Sequence[int]:
    """The map's hash of each unit: its ids from the rack inwards, each counted in its parent."""
    found = []
    for unit in range(len(tree.levels[level])):
        mixed, inner = 0, unit
        for at in range(level, tree.root):
            outer = tree.levels[at].parent[inner]
            mixed ^= inner - tree.levels[at + 1].first_child[outer]
            inner = outer
        found.append(_spread(mixed))
    return found


def hash_order(units: Iterable[int], hashes: Sequence[int]) -> list[int]:
    """Units in the order in which the map walks them after they were put in one by one."""
    capacity = _CAPACITY
    buckets: list[list[int]] = [[] for _ in range(capacity)]  # newest entry last
    for size, unit in enumerate(units, start=1):
        buckets[hashes[unit] & (capacity - 1)].append(unit)
        if size >= _LOAD * capacity:
            capacity *= 2
            moved: list[list[int]] = [[] for _ in range(capacity)]
            for bucket in reversed(buckets):
                for entry in reversed(bucket):
                    moved[hashes[entry] & (capacity - 1)].append(entry)
            buckets = moved
    return [unit for bucket in reversed(buckets) for unit in reversed(bucket)]


def _spread(mixed: int) -> int:
    """The supplemental hash function, in 32-bit arithmetic."""
    mixed = (mixed + ~(mixed << 9)) & _WORD
    mixed ^= mixed >> 14
    mixed = (mixed + (mixed << 4)) & _WORD
    return mixed ^ (mixed >> 10)
