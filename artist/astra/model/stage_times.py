"""How long a stage takes when all NPUs do the same at the same time.

Notation: n nodes, S input bytes, m bytes of a message, e endpoint delay, net(m)
time of a message, R(m) time to reduce m bytes. ASTRA-sim's times are then

    ring             k net(m) + (k + 1) e + r R(m)       k messages, r of them reduced
    direct           2 e + max net(m)                    + R(m) for a reduce-scatter
                     3 e + 2 net(m) + R(m)               all-reduce, peers equally far
    halvingDoubling  sum net(m_i) + (k + 1) e + sum R(m_i), reducing i = 1 .. log2(n) - 1

A direct all-reduce with peers unequally far is two waves (see `_two_waves`). A
direct stage with a window is played by one NPU whose messages come back to itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from artist.astra.model.agenda import Agenda, Clock
from artist.astra.model.bundles import Bundles, Delays
from artist.astra.model.collectives import (
    Stage,
    halving_doubling_messages,
    ring_messages,
    share_bytes,
)
from artist.astra.model.messages import Group, Kind, Network
from artist.astra.model.packets import PacketAgent, direct_window, packet_plan
from artist.workload.layers import Collective


class AmbiguousOrderError(Exception):
    """Two events of one instant matter to each other in an order that one NPU cannot tell."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Duration of a stage, and how its end came about (which orders ends of one instant).

    The end was planned `planned_before_ns` before it happens, by a reduction or else
    by the arrival of a message; that message was sent `sent_before_ns` before the end.
    """

    duration_ns: int
    planned_before_ns: int
    sent_before_ns: int
    ends_reducing: bool = False


class Stopwatch:
    """Times stages of one query. Not for trees, whose NPUs differ."""

    def __init__(self, network: Network, delays: Delays) -> None:
        self._network = network
        self._delays = delays
        self._routes: dict[Group, list[tuple[int, int]]] = {}

    def time(self, stage: Stage) -> Timing:
        """The timing of a stage.

        Raises:
            AmbiguousOrderError: it depends on what else the NPU does at one instant.
        """
        match stage.group.algorithm.kind:
            case Kind.RING:
                return self._ring(stage)
            case Kind.HALVING_DOUBLING:
                return self._halving_doubling(stage)
            case Kind.DIRECT:
                return self._direct(stage)
            case Kind.TREE:
                raise ValueError("the NPUs of a tree differ")

    def _ring(self, stage: Stage) -> Timing:
        count, size = ring_messages(stage), share_bytes(stage)
        message_ns = self._message_ns(stage.group, 1, size)
        duration_ns = count * message_ns + (count + 1) * self._delays.endpoint_ns
        if stage.collective in (Collective.ALL_REDUCE, Collective.REDUCE_SCATTER):
            duration_ns += (stage.group.nodes - 1) * self._delays.reduction_ns(size)
        return self._ended(stage, duration_ns, message_ns, size)

    def _halving_doubling(self, stage: Stage) -> Timing:
        messages = halving_doubling_messages(stage)
        times = [self._message_ns(stage.group, m.distance, m.size_bytes) for m in messages]
        duration_ns = sum(times) + (len(times) + 1) * self._delays.endpoint_ns
        if stage.collective is not Collective.ALL_GATHER:
            rounds = stage.group.nodes.bit_length() - 1
            reduced = messages[1:rounds]
            duration_ns += sum(self._delays.reduction_ns(m.size_bytes) for m in reduced)
        endpoint_ns = self._delays.endpoint_ns
        return Timing(duration_ns, endpoint_ns, endpoint_ns + times[-1])

    def _direct(self, stage: Stage) -> Timing:
        size, peers = share_bytes(stage), stage.group.nodes - 1
        if direct_window(stage) < peers:
            return self._lockstep(stage)
        if stage.collective is Collective.ALL_REDUCE:
            return self._two_waves(stage)
        slowest_ns = max(self._peer_times(stage.group, size))
        duration_ns = 2 * self._delays.endpoint_ns + slowest_ns
        if stage.collective is Collective.REDUCE_SCATTER:
            duration_ns += self._delays.reduction_ns(size)
        return self._ended(stage, duration_ns, slowest_ns, size)

    def _two_waves(self, stage: Stage) -> Timing:
        """A direct all-reduce: the second wave waits for all arrivals of the first.

        Each arrival, handled, is a credit for one message of the second wave. Credits
        from before the last arrival are kept and spent with the first one after it.
        Where arrivals of the second wave become credits before all of the first are
        spent, the stage is played through.
        """
        size = share_bytes(stage)
        times_ns = self._peer_times(stage.group, size)
        endpoint_ns = self._delays.endpoint_ns
        handling_ns = endpoint_ns + self._delays.reduction_ns(size)
        last_arrival_ns = endpoint_ns + max(times_ns)
        credits_ns = sorted(endpoint_ns + time_ns + handling_ns for time_ns in times_ns)
        if handling_ns and last_arrival_ns in credits_ns:
            raise AmbiguousOrderError
        first_ns = next(credit_ns for credit_ns in credits_ns if credit_ns >= last_arrival_ns)
        if first_ns + min(times_ns) + endpoint_ns < credits_ns[-1]:
            return self._lockstep(stage)
        sent_ns = [max(credit_ns, first_ns) for credit_ns in credits_ns]
        arrived_ns, left_ns = max(
            (left_ns + time_ns, left_ns) for left_ns, time_ns in zip(sent_ns, times_ns, strict=True)
        )
        duration_ns = arrived_ns + endpoint_ns
        return Timing(duration_ns, endpoint_ns, duration_ns - left_ns)

    def _peer_times(self, group: Group, size_bytes: int) -> list[int]:
        """Times of a message to the peers 1, 2, ... positions on."""
        if group not in self._routes:
            distances = range(1, group.nodes)
            self._routes[group] = [self._network.route(group, distance) for distance in distances]
        routes = self._routes[group]
        times = {route: self._network.message_ns(route, size_bytes) for route in set(routes)}
        return [times[route] for route in routes]

    def _ended(self, stage: Stage, duration_ns: int, message_ns: int, size: int) -> Timing:
        """A reduce-scatter ends with a reduction, the others with an endpoint delay alone."""
        endpoint_ns = self._delays.endpoint_ns
        if stage.collective is not Collective.REDUCE_SCATTER:
            return Timing(duration_ns, endpoint_ns, endpoint_ns + message_ns)
        reduction_ns = self._delays.reduction_ns(size)
        return Timing(duration_ns, reduction_ns, reduction_ns + endpoint_ns + message_ns, True)

    def _lockstep(self, stage: Stage) -> Timing:
        """Play one NPU of a stage: what it sends at a time, its mirror images send to it."""
        plan = packet_plan(stage)
        agenda = Agenda()
        sent_ns = ended_ns = 0

        def exchange(index: int) -> None:
            message = plan.messages[index]
            message_ns = self._message_ns(stage.group, message.distance, message.size_bytes)
            now_ns = agenda.now_ns

            def arrive() -> None:
                nonlocal sent_ns
                sent_ns = now_ns
                agent.receive()

            agenda.plan(message_ns, arrive)

        def end() -> None:
            nonlocal ended_ns
            ended_ns = agenda.now_ns

        agent = PacketAgent(plan, Bundles(Clock(agenda), self._delays), exchange, end)
        agent.start()
        agenda.run()
        if agent.close_call and not self._delays.are_nothing(share_bytes(stage)):
            raise AmbiguousOrderError
        reduced = plan.reduced_bytes[-1]
        lag_ns = self._delays.endpoint_ns if reduced is None else self._delays.reduction_ns(reduced)
        return Timing(ended_ns, lag_ns, ended_ns - sent_ns, reduced is not None)

    def _message_ns(self, group: Group, distance: int, size_bytes: int) -> int:
        return self._network.message_ns(self._network.route(group, distance), size_bytes)
