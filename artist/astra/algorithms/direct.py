"""Direct: each NPU sends to every other NPU of its group.

With n NPUs and S bytes on each of them, an NPU sends waves of n - 1 messages of m bytes, one to
each peer:

    collective       waves    m
    all-reduce       2        S / n
    reduce-scatter   1        S / n
    all-gather       1        S
    all-to-all       1        S / n

Divisions drop the remainder. `direct` sends a wave at once. `directW` has a window: at most W
messages are on their way at a time. Without a window, with net_p(m) the time of a message to peer
p,

    one wave                                 time = 2 e + max_p net_p(m)
    one wave of a reduce-scatter             time = 2 e + max_p net_p(m) + R(m)
    all-reduce, all peers equally far        time = 3 e + 2 net(m) + R(m)
    all-reduce, peers unequally far          see `_two_waves`

With a window there is no closed form, and one NPU is played (`_played`). The letters are those of
`artist.astra.algorithms.timing`.
"""

from __future__ import annotations

from math import prod

from artist.astra.algorithms.npu_in_stage import (
    Message,
    PacketAgent,
    PacketPlan,
    reduced_bytes_of_bundles,
)
from artist.astra.algorithms.timing import AmbiguousOrderError, Timing, timing_with_end
from artist.astra.messages.chunks_and_stages import Stage
from artist.astra.messages.event_order import Agenda, EventClock
from artist.astra.messages.groups import Communicator
from artist.astra.messages.message_costs import Bundles, Delays, MessageNetwork
from artist.workload.layers import Collective


def stage_time(stage: Stage, network: MessageNetwork, delays: Delays) -> Timing:
    """How long a stage takes when all NPUs do the same at the same time.

    Raises:
        AmbiguousOrderError: the time depends on what else the NPU does at one instant.
    """
    if _window(stage) < stage.group.nodes - 1 or isinstance(stage.group, Communicator):
        return _played(stage, network, delays)
    if stage.collective is Collective.ALL_REDUCE:
        return _two_waves(stage, network, delays)
    size = stage.share_bytes
    slowest_ns = max(network.message_to_peers_ns(stage.group, size))
    duration_ns = 2 * delays.endpoint_ns + slowest_ns
    if stage.collective is Collective.REDUCE_SCATTER:
        duration_ns += delays.reduction_ns(size)
    return timing_with_end(stage, duration_ns, slowest_ns, size, delays)


def packet_plan(stage: Stage) -> PacketPlan:
    """What each NPU does in a stage, message by message."""
    peers = stage.group.nodes - 1
    window = _window(stage)
    waves = _waves(stage)
    size = stage.share_bytes
    wave = tuple(Message(distance, size) for distance in range(1, peers + 1))
    # In a communicator ASTRA-sim counts arrivals as in a ring. So with three NPUs or more, the
    # arrivals of the second wave are reduced too.
    reduced = window * (peers if isinstance(stage.group, Communicator) else 1)
    reduced_bytes = reduced_bytes_of_bundles(stage, wave * waves, window, reduced)
    return PacketPlan(window, wave * waves, reduced_bytes, peers if waves > 1 else None)


def sent_bytes(stage: Stage, network: MessageNetwork) -> list[int]:
    """Bytes that one NPU sends in a stage, per dimension."""
    group, each = stage.group, _waves(stage) * stage.share_bytes
    if not group.algorithm.flat:
        sent = [0] * len(network.npus)
        sent[group.index] = (group.nodes - 1) * each
        return sent
    # A message goes through the first dimension in which the addresses differ. For dimension d
    # these are (n_d - 1) other addresses in d, times any address in the dimensions after d.
    return [
        (nodes - 1) * prod(network.npus[dimension + 1 :]) * each
        for dimension, nodes in enumerate(network.npus)
    ]


def _waves(stage: Stage) -> int:
    return 2 if stage.collective is Collective.ALL_REDUCE else 1


def _window(stage: Stage) -> int:
    """The number of peers that an NPU serves at a time."""
    peers = stage.group.nodes - 1
    window = stage.group.algorithm.window
    return peers if window is None else min(window, peers)


def _two_waves(stage: Stage, network: MessageNetwork, delays: Delays) -> Timing:
    """An all-reduce without a window. The second wave waits for all arrivals of the first.

    Each handled arrival is a credit for one message of the second wave. Credits from before the
    last arrival are kept and spent together with the first credit after it. If arrivals of the
    second wave become credits before all credits of the first wave are spent, this equation does
    not hold, and one NPU is played.
    """
    size = stage.share_bytes
    times_ns = network.message_to_peers_ns(stage.group, size)
    endpoint_ns = delays.endpoint_ns
    handling_ns = endpoint_ns + delays.reduction_ns(size)
    last_arrival_ns = endpoint_ns + max(times_ns)
    credits_ns = sorted(endpoint_ns + time_ns + handling_ns for time_ns in times_ns)
    # A credit at the instant of the last arrival may come before or after it.
    if handling_ns and last_arrival_ns in credits_ns:
        raise AmbiguousOrderError
    first_ns = next(credit_ns for credit_ns in credits_ns if credit_ns >= last_arrival_ns)
    if first_ns + min(times_ns) + endpoint_ns < credits_ns[-1]:
        return _played(stage, network, delays)
    sent_ns = [max(credit_ns, first_ns) for credit_ns in credits_ns]
    arrived_ns, left_ns = max(
        (left_ns + time_ns, left_ns) for left_ns, time_ns in zip(sent_ns, times_ns, strict=True)
    )
    duration_ns = arrived_ns + endpoint_ns
    return Timing(duration_ns, endpoint_ns, duration_ns - left_ns)


def _played(stage: Stage, network: MessageNetwork, delays: Delays) -> Timing:
    """Play one NPU of a stage message by message.

    All NPUs do the same at the same time. So a message that this NPU sends takes as long as the one
    that it receives, and stands for it.
    """
    plan = packet_plan(stage)
    agenda = Agenda()
    sent_ns = ended_ns = 0

    def exchange(index: int) -> None:
        message = plan.messages[index]
        message_ns = network.message_ns(stage.group, message.distance, message.size_bytes)
        now_ns = agenda.now_ns

        def arrive() -> None:
            nonlocal sent_ns
            sent_ns = now_ns
            agent.receive()

        agenda.plan(message_ns, arrive)

    def end() -> None:
        nonlocal ended_ns
        ended_ns = agenda.now_ns

    agent = PacketAgent(plan, Bundles(EventClock(agenda), delays), exchange, end)
    agent.start()
    agenda.run()
    if agent.close_call and not delays.are_nothing(stage.share_bytes):
        raise AmbiguousOrderError
    reduced = plan.reduced_bytes[-1]
    planned_before_ns = delays.endpoint_ns if reduced is None else delays.reduction_ns(reduced)
    return Timing(ended_ns, planned_before_ns, ended_ns - sent_ns, reduced is not None)
