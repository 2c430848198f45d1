"""From the shape of a placement to ASTRA-sim's network dimensions.

ASTRA-sim's topologies are regular. A shape whose parts are all alike becomes one
dimension per level. Where the parts of a unit differ, what they have in common at the inner
levels stays, and the rest is flattened into one dimension at that unit's level:
`5+3` is one dimension of 8 between sockets; `4+4,4` keeps dimensions of 4
inside sockets and has 3 between machines (docs/decisions/0002-uneven-placements.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import takewhile

from artist.cluster.fabric import Fabric
from artist.cluster.shape import Shape
from artist.estimates.query import Dimension, SystemSettings, Topology


def level_sizes(found: Shape, level: int | None = None) -> tuple[tuple[int, int], ...]:
    """(level index, size) of each dimension of a shape, innermost first, sizes above 1."""
    if isinstance(found, int):
        return ((0, found),) if found > 1 else ()
    level = _depth(found) if level is None else level
    parts = [level_sizes(part, level - 1) for part in found]
    if all(part == parts[0] for part in parts):
        inner, outer = parts[0], len(parts)
    else:
        alike = takewhile(lambda column: len(set(column)) == 1, zip(*parts, strict=False))
        inner = tuple(column[0] for column in alike)
        outer = _gpus(found) // math.prod(size for _, size in inner)
    return (*inner, (level, outer)) if outer > 1 else inner


def dimensions(found: Shape, fabric: Fabric) -> tuple[Dimension, ...]:
    """ASTRA-sim's dimensions for a shape on a fabric; empty for a single GPU."""
    return tuple(
        Dimension(
            Topology(fabric.levels[level].topology),
            size,
            fabric.levels[level].bandwidth_gib_per_s,
            fabric.levels[level].latency_ns,
            fabric.levels[level].name,
        )
        for level, size in level_sizes(found)
    )


def system_settings(dims: Sequence[Dimension], fabric: Fabric) -> SystemSettings:
    """ASTRA-sim's system settings for these dimensions, as the fabric says."""
    algorithms = {level.name: level.collective for level in fabric.levels}
    names = tuple(algorithms[dim.level] for dim in dims)
    system = fabric.system
    return SystemSettings(
        all_reduce=names,
        all_gather=names,
        reduce_scatter=names,
        all_to_all=names,
        scheduling_policy=system.scheduling_policy,
        collective_optimization=system.collective_optimization,
        preferred_dataset_splits=system.preferred_dataset_splits,
        active_chunks_per_dimension=system.active_chunks_per_dimension,
        endpoint_delay_ns=system.endpoint_delay_ns,
        local_mem_bandwidth_gb_per_s=system.local_mem_bandwidth_gb_per_s,
    )


def _depth(found: Shape) -> int:
    return 0 if isinstance(found, int) else 1 + _depth(found[0])


def _gpus(found: Shape) -> int:
    return found if isinstance(found, int) else sum(_gpus(part) for part in found)
