"""What the closed forms share: their notation, and the result `Timing`.

The modules `ring`, `direct` and `halving_doubling` hold one equation each for the time of a
stage. An equation holds where all NPUs do the same at the same time. Its letters are

    n       NPUs in the group
    S       bytes on each NPU when the stage begins
    k       messages that each NPU sends, one after another
    m       bytes of one message
    net(m)  time of one message on the network        `MessageNetwork.message_ns`
    e       endpoint delay, once per message handled  `Delays.endpoint_ns`
    R(m)    time to reduce m bytes                    `Delays.reduction_ns`
"""

from __future__ import annotations

from dataclasses import dataclass

from artist.astra.messages.chunks_and_stages import Stage
from artist.astra.messages.message_costs import Delays
from artist.workload.layers import Collective


class AmbiguousOrderError(Exception):
    """The result depends on the order of two simultaneous events, which one NPU does not know."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Duration of a stage, and when its end was planned.

    The other fields order stages that end at the same instant: ASTRA-sim performs events of one
    instant in the order in which they were planned. An end is planned when the last reduction
    begins or, without one, when the last message arrives: `planned_before_ns` before the end. That
    message was sent `sent_before_ns` before the end.
    """

    duration_ns: int
    planned_before_ns: int
    sent_before_ns: int
    ends_reducing: bool = False


def timing_with_end(
    stage: Stage, duration_ns: int, message_ns: int, size_bytes: int, delays: Delays
) -> Timing:
    """The timing of a stage whose last message had `size_bytes` and took `message_ns`.

    A reduce-scatter ends with a reduction, the other collectives with an endpoint delay alone.
    """
    endpoint_ns = delays.endpoint_ns
    if stage.collective is not Collective.REDUCE_SCATTER:
        return Timing(duration_ns, endpoint_ns, endpoint_ns + message_ns)
    reduction_ns = delays.reduction_ns(size_bytes)
    return Timing(duration_ns, reduction_ns, reduction_ns + endpoint_ns + message_ns, True)
