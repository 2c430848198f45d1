"""Ring: each NPU sends to the next NPU of its group and receives from the one before it.

With n NPUs and S bytes on each of them, an NPU sends k messages of m bytes and reduces r of the
messages that it receives:

    collective       k                m        r
    all-reduce       2 (n - 1)        S / n    n - 1
    reduce-scatter   n - 1            S / n    n - 1
    all-gather       n - 1            S        0
    all-to-all       n (n - 1) / 2    S / n    0

    time = k net(m) + (k + 1) e + r R(m)

Divisions drop the remainder. The letters are those of `artist.astra.algorithms.timing`.
For example, an all-reduce of 4000 bytes over 4 NPUs, with net = 1010 ns, e = 5 ns and
R = 3000 ns, takes 6 * 1010 + 7 * 5 + 3 * 3000 = 15095 ns.
"""

from __future__ import annotations

from artist.astra.algorithms.npu_in_stage import Message, PacketPlan, reduced_bytes_of_bundles
from artist.astra.algorithms.timing import Timing, timing_with_end
from artist.astra.messages.chunks_and_stages import Stage
from artist.astra.messages.message_costs import Delays, MessageNetwork
from artist.workload.layers import Collective


def stage_time(stage: Stage, network: MessageNetwork, delays: Delays) -> Timing:
    """How long a stage takes when all NPUs do the same at the same time."""
    count, size = message_count(stage), stage.share_bytes
    message_ns = network.message_ns(stage.group, 1, size)
    duration_ns = count * message_ns + (count + 1) * delays.endpoint_ns
    if stage.collective in (Collective.ALL_REDUCE, Collective.REDUCE_SCATTER):
        duration_ns += (stage.group.nodes - 1) * delays.reduction_ns(size)
    return timing_with_end(stage, duration_ns, message_ns, size, delays)


def packet_plan(stage: Stage) -> PacketPlan:
    """What each NPU does in a stage, message by message."""
    messages = (Message(1, stage.share_bytes),) * message_count(stage)
    reduced_bytes = reduced_bytes_of_bundles(stage, messages, 1, stage.group.nodes - 1)
    return PacketPlan(1, messages, reduced_bytes)


def message_count(stage: Stage) -> int:
    """Messages that each NPU sends in a stage.

    An all-to-all is forwarded from NPU to NPU, so its number of messages is quadratic.
    """
    nodes = stage.group.nodes
    match stage.collective:
        case Collective.ALL_REDUCE:
            return 2 * (nodes - 1)
        case Collective.ALL_TO_ALL:
            return nodes * (nodes - 1) // 2
        case _:
            return nodes - 1


def sent_bytes(stage: Stage, network: MessageNetwork) -> list[int]:
    """Bytes that one NPU sends in a stage, per dimension."""
    sent = [0] * len(network.npus)
    dimension, _ = network.route(stage.group, 1)
    sent[dimension] = message_count(stage) * stage.share_bytes
    return sent
