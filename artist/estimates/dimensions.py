"""From the shape of a placement to ASTRA-sim's network dimensions.

ASTRA-sim's topologies are regular. If all parts of a shape are alike, the shape has one dimension
per level. If the parts of a unit differ, the inner dimensions that all parts share stay. The rest
is flattened into one dimension at the level of the unit (docs/decisions/0002-uneven-placements.md):

    5+3      8 between sockets
    4+4,4    4 inside a socket, 3 between machines
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import takewhile

from artist.cluster.fabric import Fabric
from artist.cluster.shape import Shape, depth, gpus_of
from artist.estimates.query import Dimension, SystemSettings, Topology


def level_sizes(shape: Shape, level: int | None = None) -> tuple[tuple[int, int], ...]:
    """(level index, size) of each dimension of a shape, innermost first, without sizes of 1."""
    if isinstance(shape, int):
        return ((0, shape),) if shape > 1 else ()
    level = depth(shape) if level is None else level
    parts = [level_sizes(part, level - 1) for part in shape]
    if all(part == parts[0] for part in parts):
        inner, outer = parts[0], len(parts)
    else:
        alike = takewhile(lambda column: len(set(column)) == 1, zip(*parts, strict=False))
        inner = tuple(column[0] for column in alike)
        outer = gpus_of(shape) // math.prod(size for _, size in inner)
    return (*inner, (level, outer)) if outer > 1 else inner


def dimensions(shape: Shape, fabric: Fabric) -> tuple[Dimension, ...]:
    """ASTRA-sim's dimensions for a shape on a fabric; empty for a single GPU."""
    return tuple(
        Dimension(
            Topology(fabric.levels[level].topology),
            size,
            fabric.levels[level].bandwidth_gib_per_s,
            fabric.levels[level].latency_ns,
            fabric.levels[level].name,
        )
        for level, size in level_sizes(shape)
    )


def system_settings(dims: Sequence[Dimension], fabric: Fabric) -> SystemSettings:
    """ASTRA-sim's system settings for these dimensions, from the fabric."""
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
