"""Halving-doubling: NPUs exchange messages in pairs, and messages halve or double.

In step i the NPUs at positions p and p XOR d_i exchange messages of m_i bytes. With n NPUs (a
power of two), k = log2(n) and S bytes on each NPU, a stage has these messages:

    halving     d = 1, 2, ..., n/2        m = S/2, S/4, ..., S/n       reduce-scatter
    doubling    d = n/2, ..., 2, 1        m = S, 2 S, ..., S n/2       all-gather
    both        d = 1, ..., n/2, ..., 1   m = S/2, ..., S/n, ..., S/2  all-reduce

There is no all-to-all: ASTRA-sim exits. The time of a stage is

    time = sum over all messages of net(m_i)
           + (number of messages + 1) e
           + R(S/4) + R(S/8) + ... + R(S/n)     not for an all-gather

Divisions drop the remainder. ASTRA-sim charges the reduction of a message for the bytes of the
message that follows it, hence no R(S/2). The letters are those of
`artist.astra.algorithms.timing`.
"""

from __future__ import annotations

from artist.astra.algorithms.npu_in_stage import Message, PacketPlan, reduced_bytes_of_bundles
from artist.astra.algorithms.timing import Timing
from artist.astra.messages.chunks_and_stages import Stage
from artist.astra.messages.message_costs import Delays, MessageNetwork
from artist.workload.layers import Collective


def stage_time(stage: Stage, network: MessageNetwork, delays: Delays) -> Timing:
    """How long a stage takes when all NPUs do the same at the same time."""
    sent, group, message_ns = messages(stage), stage.group, network.message_ns
    times_ns = [message_ns(group, message.distance, message.size_bytes) for message in sent]
    duration_ns = sum(times_ns) + (len(times_ns) + 1) * delays.endpoint_ns
    if stage.collective is not Collective.ALL_GATHER:
        reduced = sent[1 : _steps(stage)]
        duration_ns += sum(delays.reduction_ns(message.size_bytes) for message in reduced)
    endpoint_ns = delays.endpoint_ns
    return Timing(duration_ns, endpoint_ns, endpoint_ns + times_ns[-1])


def packet_plan(stage: Stage) -> PacketPlan:
    """What each NPU does in a stage, message by message."""
    sent = messages(stage)
    reduced_bytes = reduced_bytes_of_bundles(stage, sent, 1, _steps(stage) - 1)
    return PacketPlan(1, sent, reduced_bytes, pairwise=True)


def messages(stage: Stage) -> tuple[Message, ...]:
    """What each NPU exchanges with its partner in each step, in order."""
    steps, farthest = _steps(stage), stage.group.nodes // 2
    if stage.collective is Collective.ALL_GATHER:
        return _doubling(stage.input_bytes, farthest, steps)
    sent: list[Message] = []
    size = stage.input_bytes // 2
    for step in range(steps):
        sent.append(Message(1 << step, size))
        size //= 2
    if stage.collective is Collective.ALL_REDUCE:
        # Between halving and doubling, ASTRA-sim halves once more and doubles again, so an odd byte
        # is lost: 12 bytes over 4 NPUs are 6 and 3 bytes in the first half, 2 and 4 in the second.
        sent += _doubling(size * 2, farthest, steps)
    return tuple(sent)


def smallest_message_bytes(stage: Stage) -> int:
    """Bytes of the smallest message of a stage."""
    return min(message.size_bytes for message in messages(stage))


def sent_bytes(stage: Stage, network: MessageNetwork) -> list[int]:
    """Bytes that one NPU sends in a stage, per dimension."""
    sent = [0] * len(network.npus)
    for message in messages(stage):
        sent[network.route(stage.group, message.distance)[0]] += message.size_bytes
    return sent


def _steps(stage: Stage) -> int:
    """log2(n): the steps of halving, and those of doubling."""
    return stage.group.nodes.bit_length() - 1


def _doubling(size: int, distance: int, steps: int) -> tuple[Message, ...]:
    return tuple(Message(distance >> step, size << step) for step in range(steps))
