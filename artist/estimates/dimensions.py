"""From the shape of a placement to ASTRA-sim's network dimensions.

ASTRA-sim's topologies are regular. A **regular** shape, in which all parts of a unit are equal, has
one dimension per level. Other shapes are uneven. The fabric's setting `uneven` says how they are
priced (docs/decisions/0015-what-astra-sim-is-asked.md):

    wider    the fastest of all regular shapes that spread at least as far; the default
    bounded  the slower of two regular shapes: the largest inside and the smallest around
    flat     the inner dimensions that all parts share stay, and the rest is one dimension at the
             level of the unit whose parts differ

    shape    wider                           bounded           flat
    5+3      5+5, 3+3+3, 2+2+2+2+2, ...      3+3 and 5+5       8 between sockets
    4+4,4    4+4,4+4, 4,4,4, 2+2,2+2,2+2...  4,4 and 4+4,4+4   4 in a socket, 3 between machines

With one ring through all GPUs of a job (`rings: one`), every shape is one dimension at its
outermost level, so no shape is uneven. An exception is a job that is divided into groups and has
several GPUs in a machine. It keeps one dimension per level: its tensor groups stay in their
machines, and the rings and messages that leave a machine share its network card, in equal parts for
the job's GPUs there.

If the GPUs of a unit, such as a machine, share a level's bandwidth (`shared_by`), the rings of the
level share what leaves the unit. With rings per level there are as many rings as the job has GPUs
in the unit, and each gets an equal part. With `rings: one`, the ring passes the unit once and has
all of the bandwidth:

    bandwidth per GPU = bandwidth / GPUs in a unit      (rings: per-level)
    bandwidth per GPU = bandwidth                       (rings: one)

For an all-reduce of S bytes over m machines of g GPUs, both send nearly the same number of bytes
through a card: in proportion to (m - 1)/m with g rings of S/g bytes at 1/g of the bandwidth, and to
(mg - 1)/(mg) with one ring of S bytes. Rings have S/g bytes under `collective_optimization:
localBWAware`; under `baseline` they have S, so `with_system` refuses that.

ASTRA-sim's rings and trees run over at most four dimensions. In a shape with more, such as one
across regions, neighbouring levels with equal links are merged into one dimension, innermost first.

The GPUs of a region share a wide-area network in the same way (`cluster_links.py`). Bytes for other
regions leave the machine first, so a GPU gets at most the bandwidth of the level inside.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import takewhile

from artist.cluster.fabric import Fabric, FabricLevel
from artist.cluster.placement_shape import (
    Shape,
    depth,
    gpus_of,
    is_regular,
    regular_alike,
    regular_around,
    regular_inside,
    regular_wider,
    unit_counts,
)
from artist.estimates.query import Dimension, SystemSettings, Topology

MOST_DIMENSIONS = 4
"""With a fifth, ASTRA-sim reads past the end of its own list (`astra/model/refusals.py`)."""


def asked_shapes(shape: Shape, fabric: Fabric, *, divided: bool = False) -> tuple[Shape, ...]:
    """The shapes that ASTRA-sim is asked about; `shape_queries.counted` says which one counts.

    Usually this is the shape itself. For an uneven shape under `wider` and `bounded`, it is several
    regular ones. With `divided`, they have the same number of GPUs, since a job's axes do not
    divide other numbers; under `bounded` it is one of them.
    """
    system = fabric.system
    if system.uneven == "flat" or is_regular(shape):
        return (shape,)
    if divided:
        alike = regular_alike(shape)
        return alike if system.uneven == "wider" else alike[:1]
    if system.rings == "one":
        return (shape,)
    if system.uneven == "wider":
        return regular_wider(shape)
    return (regular_inside(shape), regular_around(shape))


@lru_cache(maxsize=16384)
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


def dimensions(
    shape: Shape, fabric: Fabric, *, of: Shape | None = None, in_groups: bool = False
) -> tuple[Dimension, ...]:
    """ASTRA-sim's dimensions for a shape on a fabric; empty for a single GPU.

    `of`: the placement's shape, for which `shape` is asked. Under `wider`, `pair_share` applies if
    `of` spans two units. `in_groups`: the GPUs of the job communicate in groups, so no ring passes
    all of them.
    """
    stated = level_sizes(shape)
    sizes = merged(stated, fabric)
    spanning = of if of is not None and fabric.system.uneven == "wider" else shape
    pair = depth(shape) if _spans_two(spanning, fabric) and sizes[-1] == stated[-1] else None
    if fabric.system.rings == "one" and sizes and not (in_groups and _in_machine(sizes[0], fabric)):
        sizes = ((sizes[-1][0], gpus_of(shape)),)
    granted = (_granted(level, sizes, fabric, level == pair) for level, _ in sizes)
    return tuple(
        _dimension(fabric.levels[level], size, min(gib_per_s, _of_card(level, sizes, fabric)))
        for (level, size), gib_per_s in zip(sizes, granted, strict=True)
    )


def _spans_two(shape: Shape, fabric: Fabric) -> bool:
    """Whether a placement spans just two machines, or two parts of one."""
    if isinstance(shape, int):
        return False
    return unit_counts(shape)[min(fabric.level_names.index("machine"), depth(shape) - 1)] == 2


def merged(sizes: Sequence[tuple[int, int]], fabric: Fabric) -> tuple[tuple[int, int], ...]:
    """Levels with their sizes, merged to `MOST_DIMENSIONS` if enough neighbours have equal links.

    More may remain. ASTRA-sim's model then refuses the query, and says what to do.
    """
    dims = list(sizes)
    while len(dims) > MOST_DIMENSIONS:
        pairs = range(len(dims) - 1)
        inner = next((i for i in pairs if _alike(dims[i][0], dims[i + 1][0], fabric)), None)
        if inner is None:
            break
        (_, few), (level, more) = dims[inner : inner + 2]
        dims[inner : inner + 2] = [(level, few * more)]
    return tuple(dims)


def _alike(inner: int, outer: int, fabric: Fabric) -> bool:
    """Whether two levels have equal links: they differ only in name, source, uplink and GPUs."""
    ignored = {"name", "source", "uplink", "gpus"}
    one, other = (fabric.levels[level].model_dump(exclude=ignored) for level in (inner, outer))
    return one == other


def _granted(level: int, sizes: Sequence[tuple[int, int]], fabric: Fabric, pair: bool) -> float:
    """The bandwidth per GPU of a level, GiB/s. `pair`: the job spans just two units."""
    stated = fabric.levels[level]
    share = stated.pair_share if pair else 1.0
    bandwidth = stated.bandwidth_gib_per_s * share / _sharers(level, sizes, fabric)
    if not fabric.shared_outside_machines(level):
        return bandwidth
    return min(bandwidth, _granted(level - 1, sizes, fabric, pair=False))


def _sharers(level: int, sizes: Sequence[tuple[int, int]], fabric: Fabric) -> int:
    """How many rings of a level share the bandwidth out of one unit (`shared_by`).

    With one ring through all GPUs there is one dimension, and the product over inner ones is 1.
    """
    sharing = fabric.levels[level].shared_by
    if sharing is None:
        return 1
    unit = fabric.level_names.index(sharing)
    return math.prod(size for inner, size in sizes if inner <= unit)


def _in_machine(size: tuple[int, int], fabric: Fabric) -> bool:
    """Whether a dimension, given as (level, GPUs), lies inside machines."""
    return size[0] <= fabric.level_names.index("machine")


def _of_card(level: int, sizes: Sequence[tuple[int, int]], fabric: Fabric) -> float:
    """The bandwidth of each ring out of a machine's network card, GiB/s, under `rings: one`.

    The card's bandwidth is that of the machine's uplink, or else that of the level, which is for a
    single ring. Infinite where rings do not share a card.
    """
    machine, stated = fabric.level_names.index("machine"), fabric.levels[level]
    if fabric.system.rings != "one" or level <= machine or stated.shared_by is not None:
        return math.inf
    uplink = fabric.levels[machine].uplink
    card = None if uplink is None else uplink.links_gib_per_s
    rings = math.prod(size for inner, size in sizes if inner <= machine)
    return math.inf if rings == 1 else (card or stated.bandwidth_gib_per_s) / rings


def _dimension(level: FabricLevel, size: int, bandwidth_gib_per_s: float) -> Dimension:
    return Dimension(
        Topology(level.topology), size, bandwidth_gib_per_s, level.latency_ns, level.name
    )


def system_settings(
    dims: Sequence[Dimension], fabric: Fabric, *, in_groups: bool
) -> SystemSettings:
    """ASTRA-sim's system settings for these dimensions, from the fabric.

    Under `rings: one`, a group with several rings splits its buffer among them (localBWAware).
    """
    inside = bool(dims) and _in_machine((fabric.level_names.index(dims[0].level), 0), fabric)
    divides = in_groups and inside and fabric.system.rings == "one"
    algorithms = {level.name: level.collective for level in fabric.levels}
    names = tuple(algorithms[dim.level] for dim in dims)
    system = fabric.system
    return SystemSettings(
        all_reduce=names,
        all_gather=names,
        reduce_scatter=names,
        all_to_all=(system.all_to_all,) * len(names),
        scheduling_policy=system.scheduling_policy,
        collective_optimization="localBWAware" if divides else system.collective_optimization,
        preferred_dataset_splits=system.preferred_dataset_splits,
        active_chunks_per_dimension=system.active_chunks_per_dimension,
        endpoint_delay_ns=system.endpoint_delay_ns,
        local_mem_bandwidth_gb_per_s=system.local_mem_bandwidth_gb_per_s,
    )
