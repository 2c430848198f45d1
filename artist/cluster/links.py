"""The physical links that the collectives of a placement cross, for models of contention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from artist.cluster.fabric import Fabric
from artist.cluster.placement import Placement
from artist.cluster.tree import ClusterTree, units_holding


@dataclass(frozen=True, slots=True)
class Link:
    """All parallel links out of a unit (`up`) or into it (`down`), e.g. the NICs of a machine."""

    level: str
    unit: int
    direction: Literal["up", "down"]
    capacity_gib_per_s: float


def links(tree: ClusterTree, fabric: Fabric, placement: Placement) -> tuple[Link, ...]:
    """The links that a placement crosses, inner to outer, each direction once.

    A placement crosses the uplink of a unit if it has GPUs inside and outside the unit. Units of a
    level without `uplink` in the fabric have no links.
    """
    crossed: list[Link] = []
    for index, level in enumerate(fabric.levels[:-1]):
        units = list(units_holding(tree, placement.leaves, index))
        if len(units) == 1:
            break
        if level.uplink is None:
            continue
        capacity = level.uplink.capacity_gib_per_s
        for unit in units:
            crossed.append(Link(level.name, unit, "up", capacity))
            crossed.append(Link(level.name, unit, "down", capacity))
    return tuple(crossed)
