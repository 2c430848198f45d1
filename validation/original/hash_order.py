"""The order in which the original simulator visits machines and sockets.

For every attempt, the original simulator puts the units with a free GPU into a new hash map. It
takes the first unit with room, in the order of that map. A small change of this order changes its
results a lot (they are chaotic).

The numbers of the machines are arbitrary, and the order depends on them. A seed renumbers the
machines inside their racks, and changes nothing else. So results over several seeds tell what
follows from a rule and what is an accident.

Source of the hash: `MultiKeyMap` and `AbstractHashedMap` of Apache Commons Collections 3.2
(`hash`, `checkCapacity`, `ensureCapacity`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.tree import ClusterTree
from artist.rng import stream

_WORD = 0xFFFFFFFF
_CAPACITY = 16
_LOAD = 0.75


class HashOrder:
    """The order of the original simulator; with a seed, for machines numbered at random."""

    def __init__(self, tree: ClusterTree, seed: int | None = None) -> None:
        numbers = machine_numbers(tree, seed)
        self._hashes = [unit_hashes(tree, level, numbers) for level in range(tree.machine + 1)]

    def first_fit(self, free: FreeGpus, level: int, gpus: int) -> int | None:
        """The first unit with room in the map of all units with a free GPU; None if none has."""
        counts = free.counts(level)
        if not (counts >= gpus).any():
            return None
        units = counts.nonzero()[0].tolist()
        visited = hash_order(units, self._hashes[level])
        return next(unit for unit in visited if counts[unit] >= gpus)


def machine_numbers(tree: ClusterTree, seed: int | None = None) -> Sequence[int]:
    """Each machine's number in its rack: its position, or with a seed a random one."""
    rng = None if seed is None else stream(seed, "machine-order")
    numbers: list[int] = []
    for first, end in pairwise(tree.levels[tree.machine + 1].first_child):
        size = end - first
        numbers += range(size) if rng is None else rng.permutation(size).tolist()
    return numbers


def unit_hashes(tree: ClusterTree, level: int, numbers: Sequence[int]) -> Sequence[int]:
    """The map's hash of each unit of a level.

    It mixes the unit's numbers from the rack inwards; each counts inside its parent. `numbers`
    holds those of all machines in their racks.
    """
    hashes = []
    for unit in range(len(tree.levels[level])):
        mixed, inner = 0, unit
        for at in range(level, tree.root):
            outer = tree.levels[at].parent[inner]
            counted = inner - tree.levels[at + 1].first_child[outer]
            mixed ^= numbers[inner] if at == tree.machine else counted
            inner = outer
        hashes.append(_spread(mixed))
    return hashes


def hash_order(units: Iterable[int], hashes: Sequence[int]) -> list[int]:
    """Units in the order of the map, after they were put in one by one."""
    capacity = _CAPACITY
    buckets: list[list[int]] = [[] for _ in range(capacity)]  # newest entry last
    for size, unit in enumerate(units, start=1):
        buckets[hashes[unit] & (capacity - 1)].append(unit)
        # When the map grows, it walks its old buckets and puts every entry in front of a new one.
        if size >= _LOAD * capacity:
            capacity *= 2
            moved: list[list[int]] = [[] for _ in range(capacity)]
            for bucket in reversed(buckets):
                for entry in reversed(bucket):
                    moved[hashes[entry] & (capacity - 1)].append(entry)
            buckets = moved
    return [unit for bucket in reversed(buckets) for unit in reversed(bucket)]


def _spread(mixed: int) -> int:
    """The supplemental hash function of the source, in 32-bit arithmetic."""
    mixed = (mixed + ~(mixed << 9)) & _WORD
    mixed ^= mixed >> 14
    mixed = (mixed + (mixed << 4)) & _WORD
    return mixed ^ (mixed >> 10)
