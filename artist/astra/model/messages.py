"""Who talks to whom, and how long one message takes, on ASTRA-sim's unaware network.

A *group* is the set of NPUs that one phase of a collective runs among: the NPUs
of one dimension, or all of them for the `one*` algorithms. NPU ids count the
first dimension fastest. Messages never share a link (congestion-unaware):

    message_ns = floor(hops * latency_ns + bytes / bytes_per_ns)
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from math import prod

from artist.estimates.query import Dimension, Topology
from artist.units import bytes_per_ns


class Kind(Enum):
    """Families of collective algorithms."""

    RING = "ring"
    DIRECT = "direct"
    HALVING_DOUBLING = "halvingDoubling"
    TREE = "doubleBinaryTree"


@dataclass(frozen=True, slots=True)
class Algorithm:
    """A collective algorithm. `flat`: over all NPUs at once; `window`: peers served at a time."""

    kind: Kind
    flat: bool = False
    window: int | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """The NPUs of one phase: `nodes` of them, `stride` ids apart, running `algorithm`.

    `index` is the position in the implementation list, which also numbers the queues.
    """

    index: int
    nodes: int
    stride: int
    algorithm: Algorithm

    def position(self, npu: int) -> int:
        """Where in its group an NPU sits."""
        return npu // self.stride % self.nodes

    def member(self, npu: int, position: int) -> int:
        """The NPU at `position` of the group that `npu` belongs to."""
        return npu + (position - self.position(npu)) * self.stride


def groups(npus: tuple[int, ...], algorithms: tuple[Algorithm, ...]) -> tuple[Group, ...]:
    """The groups of an implementation list.

    As in ASTRA-sim a `one*` entry spans all NPUs and ends the list, and
    dimensions beyond the end of the list take no part.
    """
    found: list[Group] = []
    stride = 1
    for index, (nodes, algorithm) in enumerate(zip(npus, algorithms, strict=False)):
        if algorithm.flat:
            return (*found, Group(index, prod(npus), 1, algorithm))
        found.append(Group(index, nodes, stride, algorithm))
        stride *= nodes
    return tuple(found)


class Network:
    """The dimensions of a query, answering for messages by distance."""

    def __init__(self, dimensions: tuple[Dimension, ...]) -> None:
        self.dimensions = dimensions
        self.npus = tuple(d.npus for d in dimensions)
        self.total_npus = prod(self.npus)
        self._bytes_per_ns = [bytes_per_ns(d.bandwidth_gib_per_s) for d in dimensions]

    def route(self, group: Group, distance: int) -> tuple[int, int]:
        """(dimension, hops) of a message to the NPU `distance` positions on in the group.

        ASTRA-sim charges a message in the first dimension where the addresses differ.
        """
        if not group.algorithm.flat:
            return group.index, self._hops(group.index, distance)
        for dimension, nodes in enumerate(self.npus):
            if digit := distance % nodes:
                return dimension, self._hops(dimension, digit)
            distance //= nodes
        raise ValueError("an NPU does not send to itself")

    def message_ns(self, route: tuple[int, int], size_bytes: int) -> int:
        """Time of one message: latency per hop, bytes once, truncated together."""
        dimension, hops = route
        latency_ns = self.dimensions[dimension].latency_ns
        return int(hops * latency_ns + size_bytes / self._bytes_per_ns[dimension])

    def _hops(self, dimension: int, distance: int) -> int:
        match self.dimensions[dimension].topology:
            case Topology.FULLY_CONNECTED:
                return 1
            case Topology.SWITCH:
                return 2
            case Topology.RING:
                forward = distance % self.npus[dimension]
                return min(forward, self.npus[dimension] - forward)
