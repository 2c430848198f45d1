"""The physical links that the collectives of a placement cross, for models of contention.

What a unit's GPUs can send at once is what the levels outside grant them: to each GPU, or to each
unit that shares the bandwidth (`shared_by`). One ring through all GPUs of a job (`rings: one`)
leaves a machine once and has all of its links, so under it machines count as senders, not GPUs. A
unit's **oversubscription** is what its GPUs can send at once, over the capacity of its uplink.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from artist.cluster.fabric import Fabric, FabricLevel
from artist.cluster.placement import Placement, unit_counts
from artist.cluster.tree import ClusterTree, Nested, nested
from artist.units import GIB, ratio_text

# Children of a unit in a scenario's default cluster (Dally, section V-B).
USUAL_CHILDREN = 8


@dataclass(frozen=True, slots=True)
class Link:
    """All parallel links out of a unit (`up`) or into it (`down`), e.g. the NICs of a machine.

    With `index` it is a single one of these links (`artist.network.demand.routes`).
    """

    level: str
    unit: int
    direction: Literal["up", "down"]
    capacity_gib_per_s: float
    eta: float | None = None
    """The usable share of the capacity while jobs share it; None if the fabric states none."""
    index: int | None = None

    @property
    def bytes_per_s(self) -> float:
        """The capacity in bytes per second."""
        return self.capacity_gib_per_s * GIB

    @property
    def name(self) -> str:
        """The link in words: `rack 0 up`, or `rack 0.2 up` for one of several parallel links."""
        index = "" if self.index is None else f".{self.index}"
        return f"{self.level} {self.unit}{index} {self.direction}"

    @property
    def order(self) -> tuple[int, int, str]:
        """Sorting key of the links of a level: unit, index, direction."""
        return self.unit, self.index or 0, self.direction


def capacity_gib_per_s(tree: ClusterTree, fabric: Fabric, level: int, unit: int) -> float | None:
    """Capacity of a unit's uplink in one direction; None if the fabric states no uplink.

    Each link of an uplink that is stated as an oversubscription carries at least one flow.
    """
    uplink = fabric.levels[level].uplink
    if uplink is None:
        return None
    if uplink.oversubscription is None:
        return uplink.links_gib_per_s
    flow = max(outer.bandwidth_gib_per_s for outer in _granting(fabric, level))
    least = flow * uplink.routed_links
    return max(granted_gib_per_s(tree, fabric, level, unit) / uplink.oversubscription, least)


def oversubscription(tree: ClusterTree, fabric: Fabric, level: int, unit: int) -> float | None:
    """What a unit's GPUs can send at once over what its uplink carries; None without an uplink."""
    capacity = capacity_gib_per_s(tree, fabric, level, unit)
    if capacity is None:
        return None
    return granted_gib_per_s(tree, fabric, level, unit) / capacity


def most_oversubscribed(tree: ClusterTree, fabric: Fabric, level: int) -> float:
    """The highest oversubscription of a level's units; 0 without an uplink."""
    units = range(len(tree.levels[level].gpus))
    return max((oversubscription(tree, fabric, level, unit) or 0.0 for unit in units), default=0.0)


def usual_oversubscriptions(fabric: Fabric) -> tuple[float | None, ...]:
    """The oversubscription of a unit of each level, inner to outer, for units of default sizes.

    Machines have 8 GPUs, racks 8 machines, and so on outwards.
    """
    inside = fabric.levels[0].gpus or USUAL_CHILDREN
    unit: Nested = inside
    for level in range(1, len(fabric.levels)):
        children = USUAL_CHILDREN
        if fabric.levels[level].name == "machine":
            children = max(USUAL_CHILDREN // inside, 1)
        unit = [unit] * (children if level < len(fabric.levels) - 1 else 1)
    tree = nested(fabric.level_names, unit)
    return tuple(oversubscription(tree, fabric, level, 0) for level in range(len(fabric.levels)))


def oversubscription_text(fabric: Fabric) -> str:
    """`usual_oversubscriptions` in words: `machine 1:1, rack 2:1`; empty without any uplink."""
    ratios = zip(fabric.level_names, usual_oversubscriptions(fabric), strict=True)
    return ", ".join(f"{name} {ratio_text(ratio)}" for name, ratio in ratios if ratio is not None)


def granted_gib_per_s(tree: ClusterTree, fabric: Fabric, level: int, unit: int) -> float:
    """What a unit's GPUs can send at once over the level outside that grants the most."""
    return max(
        outer.bandwidth_gib_per_s * _senders(tree, fabric, level, unit, outer)
        for outer in _granting(fabric, level)
    )


def _granting(fabric: Fabric, level: int) -> list[FabricLevel]:
    """The levels outside a level, without a wide-area network that larger units share.

    Traffic for that network crosses the levels between first, so it gets no more than they grant.
    """
    outer = list(enumerate(fabric.levels))[level + 1 :]
    return [
        stated
        for index, stated in outer
        if not fabric.shared_outside_machines(index)
        or fabric.level_names.index(stated.shared_by or "") <= level
    ]


def _senders(tree: ClusterTree, fabric: Fabric, level: int, unit: int, outer: FabricLevel) -> int:
    """How many senders of a unit (GPUs, or units that share) get an outer level's bandwidth."""
    sharing = outer.shared_by or ("machine" if fabric.system.rings == "one" else None)
    if sharing is None:
        return tree.levels[level].gpus[unit]
    inner = fabric.level_names.index(sharing)
    return len(tree.units_inside(level, unit, inner)) if inner < level else 1


def links(tree: ClusterTree, fabric: Fabric, placement: Placement) -> tuple[Link, ...]:
    """The links that a placement crosses, inner to outer, each direction once.

    A placement crosses the uplink of a unit if it has GPUs inside and outside the unit. Units of a
    level without `uplink` in the fabric have no links.
    """
    crossed: list[Link] = []
    for index, level in enumerate(fabric.levels[:-1]):
        units = list(unit_counts(tree, placement, index))
        if len(units) == 1:
            break
        if level.uplink is not None:
            for unit in units:
                crossed += both_directions(tree, fabric, index, unit)
    return tuple(crossed)


def both_directions(tree: ClusterTree, fabric: Fabric, level: int, unit: int) -> tuple[Link, Link]:
    """The uplink of a unit, up and down. Its level must state one."""
    stated = fabric.levels[level]
    capacity = capacity_gib_per_s(tree, fabric, level, unit)
    assert stated.uplink is not None
    assert capacity is not None
    eta = stated.uplink.eta
    up = Link(stated.name, unit, "up", capacity, eta)
    return up, Link(stated.name, unit, "down", capacity, eta)
