"""In which regions a placement lies."""

from __future__ import annotations

from artist.cluster.placement import Placement
from artist.cluster.tree import ClusterTree


def regions_of(tree: ClusterTree, level: int, placement: Placement) -> list[int]:
    """The regions in which a placement has GPUs, ascending; `level` is that of regions."""
    ends = (placement.leaves[0], placement.leaves[-1])
    first, last = (tree.ancestor(0, leaf, level) for leaf in ends)
    if first == last:
        return [first]
    return sorted({tree.ancestor(0, leaf, level) for leaf in placement.leaves})


def gpus_by_region(tree: ClusterTree, level: int, placement: Placement) -> dict[int, int]:
    """Region -> GPUs of a placement, regions ascending."""
    regions = regions_of(tree, level, placement)
    if len(regions) == 1:
        return {regions[0]: placement.gpus}
    gpus = dict.fromkeys(regions, 0)
    for leaf, count in zip(placement.leaves, placement.counts, strict=True):
        gpus[tree.ancestor(0, leaf, level)] += count
    return gpus
