"""What one message costs: its time on the network, and what the receiver does with its bytes.

**The network** is ASTRA-sim's congestion-unaware one: a message never waits for another message.
With h hops, a latency per hop and a bandwidth of the dimension,

    message_ns = floor(h * latency_ns + bytes / bytes_per_ns)

    topology         hops h between positions that are d apart, of n
    FullyConnected   1
    Switch           2 (to the switch and from it)
    Ring             min(d, n - d)

**The receiver** waits for the endpoint delay, then reduces. ASTRA-sim calls the bytes that are
handled together a *bundle*. With the endpoint delay e and the local memory bandwidth B,

    time of a bundle            e
    time of a reduced bundle    e + R(m),  R(m) = 3 floor(m / B)
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from artist.astra.messages.event_order import Action, EventClock
from artist.astra.messages.groups import AnyGroup, Communicator
from artist.estimates.query import Dimension, Topology
from artist.units import bytes_per_ns


@dataclass(frozen=True, slots=True)
class Delays:
    """The endpoint delay and the local memory bandwidth, which are the same for every NPU."""

    endpoint_ns: int
    memory_bytes_per_s: float

    def reduction_ns(self, size_bytes: int) -> int:
        """Time to reduce some bytes: two reads and one write, each truncated to nanoseconds."""
        return 3 * int(size_bytes / self.memory_bytes_per_s * 1e9)

    def are_nothing(self, size_bytes: int) -> bool:
        """Whether handling this many bytes takes no time, with or without a reduction."""
        return self.endpoint_ns == self.reduction_ns(size_bytes) == 0


class Bundles:
    """Handles the bundles of one NPU. Bundles do not wait for each other."""

    def __init__(self, clock: EventClock, delays: Delays) -> None:
        self._clock = clock
        self._delays = delays

    @property
    def now_ns(self) -> int:
        """The time."""
        return self._clock.now_ns

    def handle(self, reduced_bytes: int | None, action: Action) -> None:
        """Perform `action` after the endpoint delay, and after the reduction if bytes are given."""
        if reduced_bytes is None:
            self._clock.plan(self._delays.endpoint_ns, action)
            return
        # Two events, not one after the sum of both times: ASTRA-sim plans the reduction only
        # when the delay is over, which decides its place among events of the same instant.
        reduction_ns = self._delays.reduction_ns(reduced_bytes)
        self._clock.plan(self._delays.endpoint_ns, lambda: self._clock.plan(reduction_ns, action))


Route = tuple[int, int]
"""(dimension, hops) of a message."""


class MessageNetwork:
    """The dimensions of a query. It answers how far apart NPUs are and how long messages take."""

    def __init__(self, dimensions: tuple[Dimension, ...]) -> None:
        self.dimensions = dimensions
        self.npus = tuple(d.npus for d in dimensions)
        self.total_npus = prod(self.npus)
        self._bytes_per_ns = [bytes_per_ns(d.bandwidth_gib_per_s) for d in dimensions]
        self._peer_routes: dict[AnyGroup, list[Route]] = {}

    def route(self, group: AnyGroup, distance: int) -> Route:
        """The route to the NPU that is `distance` positions further on in the group.

        For a communicator, this is the route from its first NPU; use it only if all are the same.
        """
        if isinstance(group, Communicator):
            return self.route_between(group.ranks[0], group.ranks[distance % group.nodes])
        if not group.algorithm.flat:
            return group.index, self._hops(group.index, distance)
        return self.route_between(0, distance)

    def route_between(self, source: int, target: int) -> Route:
        """The route between two NPUs.

        ASTRA-sim charges a message only to the first dimension in which the two addresses differ.
        """
        for dimension, nodes in enumerate(self.npus):
            if digit := (target - source) % nodes:
                return dimension, self._hops(dimension, digit)
            source, target = source // nodes, target // nodes
        raise ValueError("an NPU does not send to itself")

    def pair_ns(self, source: int, target: int, size_bytes: int) -> int:
        """Time of one message between two NPUs."""
        return self.message_on_route_ns(self.route_between(source, target), size_bytes)

    def message_on_route_ns(self, route: Route, size_bytes: int) -> int:
        """Time of one message: latency for each hop, bytes once, truncated together."""
        dimension, hops = route
        latency_ns = self.dimensions[dimension].latency_ns
        return int(hops * latency_ns + size_bytes / self._bytes_per_ns[dimension])

    def message_ns(self, group: AnyGroup, distance: int, size_bytes: int) -> int:
        """Time of one message to the NPU that is `distance` positions further on in the group."""
        return self.message_on_route_ns(self.route(group, distance), size_bytes)

    def message_to_peers_ns(self, group: AnyGroup, size_bytes: int) -> list[int]:
        """Times of one message to each peer: to the NPUs 1, 2, ... positions further on."""
        # Routes are kept, since many stages and collectives run among the same group.
        if group not in self._peer_routes:
            distances = range(1, group.nodes)
            self._peer_routes[group] = [self.route(group, distance) for distance in distances]
        routes = self._peer_routes[group]
        times_ns = {route: self.message_on_route_ns(route, size_bytes) for route in set(routes)}
        return [times_ns[route] for route in routes]

    def _hops(self, dimension: int, distance: int) -> int:
        match self.dimensions[dimension].topology:
            case Topology.FULLY_CONNECTED:
                return 1
            case Topology.SWITCH:
                return 2
            case Topology.RING:
                forward = distance % self.npus[dimension]
                return min(forward, self.npus[dimension] - forward)
