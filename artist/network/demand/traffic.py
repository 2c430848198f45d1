"""Bytes that a job's GPUs in one unit send to its GPUs in other units, in one iteration.

An estimate says how many bytes an NPU sends on each dimension of its query. The NPUs are the job's
GPUs in the order of its leaves, innermost dimension first, as ASTRA-sim numbers them. The algorithm
of a dimension says to which peers a position sends. So for even shapes, the bytes that leave a unit
are

    (GPUs inside) x (bytes per NPU of all dimensions that span more than the unit)

A flattened shape has a dimension that lies partly inside a unit. A ring in visiting order leaves a
contiguous unit once; direct sends go to every peer outside.

Under `wider` and `bounded` an uneven placement costs as much as a regular shape of another size
(`artist.estimates.dimensions`). Each part of a unit then sends to the unit's other parts what a
part of that regular shape sends.

The groups of a divided job lie along its axes, which may fill a dimension in part. The peers of an
NPU are then the other NPUs of its group.

In a group of n NPUs that send B bytes each, on average, position p sends

    ring               B to p + 1
    direct             B / (n - 1) to each of the others
    halving-doubling   B x (1/2, 1/4, ...) / (1 - 1/n) to p XOR 1, p XOR 2, ...
    double binary tree B n / (2 (n - 1)) each way along each edge, half of it on each of two trees

The last two follow from the tables in `artist.astra.algorithms`: a message to p XOR 2^i has
S / 2^(i + 1) bytes, and every edge of a tree carries the chunk once up and once down. ASTRA-sim
gives its trees to stages in turn, so a single stage runs on one of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from artist.astra.algorithms.double_binary_tree import tree
from artist.astra.messages.groups import Algorithm, GroupFamily, algorithm_of
from artist.cluster.placement import Placement, unit_counts
from artist.cluster.tree import ClusterTree
from artist.errors import ConfigError
from artist.estimates.query import AxisTraffic, Dimension

Ints = npt.NDArray[np.int64]


class Sending(NamedTuple):
    """Positions that send, positions that receive, and the part of B that each message carries."""

    sources: Ints
    targets: Ints
    part: float


def sendings(algorithm: Algorithm, nodes: int) -> Iterator[Sending]:
    """Everything that the positions 0 to `nodes - 1` of a group send."""
    here = np.arange(nodes)
    match algorithm.family:
        case GroupFamily.RING:
            yield Sending(here, (here + 1) % nodes, 1.0)
        case GroupFamily.DIRECT:
            for distance in range(1, nodes):
                yield Sending(here, (here + distance) % nodes, 1.0 / (nodes - 1))
        case GroupFamily.HALVING_DOUBLING:
            distance = 1
            while distance < nodes:
                part = 1.0 / (2 * distance) / (1.0 - 1.0 / nodes)
                yield Sending(here, here ^ distance, part)
                distance *= 2
        case GroupFamily.TREE:
            yield from _trees(nodes)


def _trees(nodes: int) -> Iterator[Sending]:
    # Half of the buffer goes up each tree, over each of its n - 1 edges, and down again; B, what an
    # NPU sends on average, is 2 (n - 1) / n buffers.
    part = nodes / (2 * (nodes - 1)) / 2
    for variant in (0, 1):
        edges = [
            (child, node.parent)
            for child, node in enumerate(tree(nodes, variant))
            if node.parent is not None
        ]
        children, parents = np.array(edges).T
        yield Sending(children, parents, part)
        yield Sending(parents, children, part)


class SentBytes(NamedTuple):
    """What the GPUs of a job in one unit send to those in another, in one iteration."""

    source: int
    target: int
    volume_bytes: float
    connections: float
    """Pairs of GPUs that send; a pair that sends on two dimensions counts twice."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """What links need of a query's answer: dimensions, algorithms, and bytes per NPU."""

    dimensions: tuple[Dimension, ...]
    algorithms: tuple[str, ...]
    bytes_per_dimension: tuple[float, ...]
    axes: tuple[AxisTraffic, ...] | None = None
    """What a divided job sends along each axis; it replaces the bytes per dimension."""

    @property
    def npus(self) -> int:
        """The number of NPUs in the query."""
        return math.prod(dimension.npus for dimension in self.dimensions)

    def spans(self) -> Iterator[tuple[Algorithm, int, int, float, str]]:
        """For each kind of group of NPUs: algorithm, size, stride, bytes per NPU, outermost level.

        Raises:
            ConfigError: an algorithm over all dimensions is combined with others.
        """
        algorithms = [algorithm_of(name) for name in self.algorithms]
        if self.axes is not None:
            for axis in self.axes:
                level = self.dimensions[axis.dimension].level
                algorithm = _any_size(algorithms[axis.dimension])
                yield algorithm, axis.npus, axis.stride, axis.size_bytes, level
            return
        if algorithms and algorithms[0].flat:
            total = math.fsum(self.bytes_per_dimension)
            yield algorithms[0], self.npus, 1, total, self.dimensions[-1].level
            return
        stride = 1
        for dimension, algorithm, sent in zip(
            self.dimensions, algorithms, self.bytes_per_dimension, strict=True
        ):
            if algorithm.flat:
                raise ConfigError(
                    f"collectives {', '.join(self.algorithms)}: an algorithm over all dimensions "
                    "cannot be mixed with algorithms on single ones; give all levels the same "
                    "algorithm"
                )
            yield algorithm, dimension.npus, stride, sent, dimension.level
            stride *= dimension.npus


def sent_between(
    tree: ClusterTree, placement: Placement, traffic: Traffic, level: int
) -> list[SentBytes]:
    """What the job's units of a level send each other, in the order of sources and targets.

    Raises:
        ConfigError: as `Traffic.spans`.
    """
    if traffic.npus == placement.gpus:
        return between_npus(_units_of_gpus(tree, placement, level), traffic)
    return _between_parts(tree, placement, traffic, level)


def between_npus(units: Sequence[int] | Ints, traffic: Traffic) -> list[SentBytes]:
    """What units send each other, if NPU i lies in `units[i]`."""
    names, unit_of = np.unique(np.asarray(units, dtype=np.int64), return_inverse=True)
    volumes = np.zeros((len(names), len(names)))
    counts = np.zeros((len(names), len(names)))
    npus = np.arange(traffic.npus)
    for algorithm, nodes, stride, sent, _ in traffic.spans():
        if not sent:
            continue
        firsts = npus[npus // stride % nodes == 0]
        for sending in sendings(algorithm, nodes):
            source = unit_of[(firsts[:, None] + sending.sources * stride).ravel()]
            target = unit_of[(firsts[:, None] + sending.targets * stride).ravel()]
            np.add.at(volumes, (source, target), sending.part * sent)
            np.add.at(counts, (source, target), 1.0)
    np.fill_diagonal(volumes, 0.0)
    return [
        SentBytes(int(names[x]), int(names[y]), float(volumes[x, y]), float(counts[x, y]))
        for x, y in zip(*np.nonzero(volumes), strict=True)
    ]


def _units_of_gpus(tree: ClusterTree, placement: Placement, level: int) -> Ints:
    units = [tree.ancestor(0, leaf, level) for leaf in placement.leaves]
    return np.repeat(units, placement.counts)


def _between_parts(
    tree: ClusterTree, placement: Placement, traffic: Traffic, level: int
) -> list[SentBytes]:
    """What the parts of an uneven placement send each other, as parts of a regular shape would.

    The bytes of a part are spread evenly over its units of `level`, pair by pair.
    """
    volumes: dict[tuple[int, int], float] = {}
    counts: dict[tuple[int, int], float] = {}
    for algorithm, nodes, stride, sent, name in traffic.spans():
        outer = tree.level_names.index(name)
        if outer <= level or not sent:
            continue
        for parts in _parts(tree, placement, outer, level):
            fitting = algorithm if nodes == len(parts) else _any_size(algorithm)
            for sending in sendings(fitting, len(parts)) if len(parts) > 1 else ():
                for x, y in zip(sending.sources.tolist(), sending.targets.tolist(), strict=True):
                    pairs = list(_pairs(parts[x], parts[y]))
                    for pair in pairs:
                        volume = stride * sent * sending.part / len(pairs)
                        volumes[pair] = volumes.get(pair, 0.0) + volume
                        counts[pair] = counts.get(pair, 0.0) + stride / len(pairs)
    return [SentBytes(*pair, volumes[pair], counts[pair]) for pair in sorted(volumes)]


def _parts(
    tree: ClusterTree, placement: Placement, outer: int, level: int
) -> Iterator[list[list[int]]]:
    """For each unit of level `outer`: the units of `level` in each of its children."""
    within: dict[int, dict[int, list[int]]] = {}
    for unit in unit_counts(tree, placement, level):
        child = tree.ancestor(level, unit, outer - 1)
        parent = tree.ancestor(level, unit, outer)
        within.setdefault(parent, {}).setdefault(child, []).append(unit)
    for children in within.values():
        yield list(children.values())


def _pairs(sources: Sequence[int], targets: Sequence[int]) -> Iterator[tuple[int, int]]:
    for index in range(max(len(sources), len(targets))):
        yield sources[index % len(sources)], targets[index % len(targets)]


def _any_size(algorithm: Algorithm) -> Algorithm:
    """The algorithm if it works for any group size, else direct sends."""
    if algorithm.family in (GroupFamily.RING, GroupFamily.DIRECT):
        return algorithm
    return Algorithm(GroupFamily.DIRECT)
