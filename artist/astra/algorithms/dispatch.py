"""Which module answers for a stage, by the algorithm of its group.

ring               `ring`, `oneRing`
direct             `direct`, `directW`, `oneDirect`
halving_doubling   `halvingDoubling`, `oneHalvingDoubling`
double_binary_tree `doubleBinaryTree`
"""

from __future__ import annotations

from artist.astra.algorithms import direct, double_binary_tree, halving_doubling, ring
from artist.astra.algorithms.npu_in_stage import PacketPlan
from artist.astra.algorithms.timing import Timing
from artist.astra.messages.chunks_and_stages import Stage
from artist.astra.messages.groups import GroupFamily
from artist.astra.messages.message_costs import Delays, MessageNetwork


def stage_time(stage: Stage, network: MessageNetwork, delays: Delays) -> Timing:
    """How long a stage takes when all NPUs do the same at the same time; not for trees.

    Raises:
        AmbiguousOrderError: the time depends on what else the NPU does at one instant.
    """
    match stage.group.algorithm.family:
        case GroupFamily.RING:
            return ring.stage_time(stage, network, delays)
        case GroupFamily.DIRECT:
            return direct.stage_time(stage, network, delays)
        case GroupFamily.HALVING_DOUBLING:
            return halving_doubling.stage_time(stage, network, delays)
        case GroupFamily.TREE:
            raise ValueError("the NPUs of a tree do not all do the same")


def packet_plan(stage: Stage) -> PacketPlan:
    """What each NPU does in a stage, message by message; not for trees."""
    match stage.group.algorithm.family:
        case GroupFamily.RING:
            return ring.packet_plan(stage)
        case GroupFamily.DIRECT:
            return direct.packet_plan(stage)
        case GroupFamily.HALVING_DOUBLING:
            return halving_doubling.packet_plan(stage)
        case GroupFamily.TREE:
            raise ValueError("a tree sends no packets")


def sent_bytes(stage: Stage, network: MessageNetwork) -> tuple[int, ...]:
    """Bytes that one NPU sends in a stage, per dimension; for a tree the mean over its NPUs."""
    match stage.group.algorithm.family:
        case GroupFamily.RING:
            return tuple(ring.sent_bytes(stage, network))
        case GroupFamily.DIRECT:
            return tuple(direct.sent_bytes(stage, network))
        case GroupFamily.HALVING_DOUBLING:
            return tuple(halving_doubling.sent_bytes(stage, network))
        case GroupFamily.TREE:
            return tuple(double_binary_tree.sent_bytes(stage, network))


def smallest_message_bytes(stage: Stage) -> int:
    """Bytes of the smallest message of a stage. ASTRA-sim aborts on a message of 0 bytes."""
    match stage.group.algorithm.family:
        case GroupFamily.TREE:
            return stage.input_bytes
        case GroupFamily.HALVING_DOUBLING:
            return halving_doubling.smallest_message_bytes(stage)
        case _:
            return stage.share_bytes
