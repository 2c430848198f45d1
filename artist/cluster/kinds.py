"""Which kinds of GPUs units have. A cluster file names the kinds of machines."""

from __future__ import annotations

from collections.abc import Collection

from artist.cluster.tree import ClusterTree


def gpus_by_kind(tree: ClusterTree) -> dict[str, int]:
    """GPUs of the whole cluster by kind, in the order of machines."""
    gpus: dict[str, int] = {}
    for kind, count in zip(tree.kinds, tree.levels[tree.machine].gpus, strict=True):
        gpus[kind] = gpus.get(kind, 0) + count
    return gpus


def gpus_of_kinds(tree: ClusterTree, level: int, kinds: Collection[str]) -> list[int]:
    """GPUs of these kinds in each unit of a level (machine or outer); all GPUs if none is named."""
    sizes = tree.levels[level].gpus
    if not kinds:
        return list(sizes)
    machines = tree.levels[tree.machine].gpus
    return [
        sum(
            machines[machine]
            for machine in tree.units_inside(level, unit, tree.machine)
            if tree.kinds[machine] in kinds
        )
        for unit in range(len(sizes))
    ]


def kind_of_units(tree: ClusterTree, level: int) -> list[str | None]:
    """The kind of GPUs of each unit of a level (machine or outer); None if it has several."""
    units = range(len(tree.levels[level]))
    inside = [{tree.kinds[x] for x in tree.units_inside(level, u, tree.machine)} for u in units]
    return [next(iter(kinds)) if len(kinds) == 1 else None for kinds in inside]
