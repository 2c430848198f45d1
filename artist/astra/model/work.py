"""What all NPUs of a query share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from artist.astra.messages.chunks_and_stages import Cut, Request
from artist.astra.messages.message_costs import Delays, MessageNetwork


@dataclass(frozen=True, slots=True)
class ChunkedNetwork:
    """The network, and how collectives are cut into chunks.

    Each dimension has `queues` queues, in each of which `slots` chunks run at a time.
    """

    network: MessageNetwork
    delays: Delays
    cuts: Mapping[Request, Cut]
    queues: int
    slots: int
