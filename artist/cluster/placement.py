"""Where a job's GPUs are: leaves of the cluster tree, and how many GPUs of each.

`placement_shape.py` describes a placement without labels, which is all that ASTRA-sim can see.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from artist.cluster.tree import ClusterTree


class Placement(NamedTuple):
    """GPUs taken from leaves: `counts[i]` GPUs of leaf `leaves[i]`, leaves ascending."""

    leaves: tuple[int, ...]
    counts: tuple[int, ...]

    @classmethod
    def of(cls, taken: Mapping[int, int]) -> Placement:
        """Build a placement from leaf -> number of GPUs."""
        if len(taken) == 1:
            return cls(tuple(taken), tuple(taken.values()))
        leaves = tuple(sorted(taken))
        return cls(leaves, tuple(taken[leaf] for leaf in leaves))

    @property
    def gpus(self) -> int:
        """Number of GPUs."""
        counts = self.counts
        return counts[0] if len(counts) == 1 else sum(counts)


def tier(tree: ClusterTree, placement: Placement) -> int:
    """Index of the outermost level that the placement spans, at least the machine level."""
    first, last = placement.leaves[0], placement.leaves[-1]
    level = 0
    while first != last:
        parent = tree.levels[level].parent
        first, last = parent[first], parent[last]
        level += 1
    return max(level, tree.machine)


def machine_counts(tree: ClusterTree, placement: Placement) -> dict[int, int]:
    """The GPUs of a placement by machine; machines ascend."""
    counts: dict[int, int] = {}
    machine_of = tree.machine_of
    for leaf, count in zip(placement.leaves, placement.counts, strict=True):
        machine = machine_of[leaf]
        counts[machine] = counts.get(machine, 0) + count
    return counts


def unit_counts(tree: ClusterTree, placement: Placement, level: int) -> dict[int, int]:
    """The GPUs of a placement by unit of a level; units ascend."""
    first = tree.ancestor(0, placement.leaves[0], level)
    if first == tree.ancestor(0, placement.leaves[-1], level):
        return {first: placement.gpus}
    counts: dict[int, int] = {}
    for leaf, count in zip(placement.leaves, placement.counts, strict=True):
        unit = tree.ancestor(0, leaf, level)
        counts[unit] = counts.get(unit, 0) + count
    return counts


def placement_flaw(placement: Any) -> str:
    """What is wrong with a placement on any cluster; empty if nothing is.

    Policies and event sources make placements, so one may hold anything. It stays `Any` here: after
    `isinstance`, mypyc would trust that its fields have the types that the class declares.
    """
    if not issubclass(type(placement), Placement):
        return "is not a placement"
    leaves, counts = placement.leaves, placement.counts
    if type(leaves) is not tuple or type(counts) is not tuple:
        return "holds something other than two tuples"
    if not leaves:
        return "has no GPUs"
    # Other types (numpy's integers, booleans) would compare equal and have equal hashes, but print
    # differently in the rows.
    for number in leaves + counts:
        if type(number) is not int:
            return "holds numbers other than Python's integers"
    if len(leaves) != len(counts):
        return "lists leaves twice or out of order"
    before = leaves[0]
    for leaf in leaves[1:]:
        if leaf <= before:
            return "lists leaves twice or out of order"
        before = leaf
    return ""
