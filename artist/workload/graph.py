"""The graph of one iteration, GPU by GPU: what each computes and sends, and what waits for what.

A GPU runs at most one computation and at most one collective or send at a time: these are its two
**lanes**. A receive takes neither, and operations of the host have a lane of their own. Whenever
something ends on a GPU, its ready nodes are taken in ascending order, and each begins if its lane
is free; a node is ready when all nodes that it waits for have ended. This is ASTRA-sim's workload
layer.

A send ends when its message arrives, whether or not anybody waits for it. A receive ends with the
arrival of a message with the same tag, bytes, sender and receiver.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from artist.workload.layers import Collective


class Kind(IntEnum):
    """What a node does."""

    COMPUTE = 0
    COLLECTIVE = 1
    SEND = 2
    RECEIVE = 3
    HOST = 4
    """A computation of the host, as traces of PyTorch's profiler have them."""
    SERIES = 5
    """Computations and collectives that alternate (`lanes.py`)."""


Over = tuple[bool, ...] | int | None
"""Who takes part in a collective of a placed job: the GPUs that differ only in these dimensions,
the GPU's communicator of this number, or all GPUs."""


@dataclass(frozen=True, slots=True)
class GraphNode:
    """One operation of a GPU. `after` are the places of the nodes that it waits for.

    `size_bytes` is ASTRA-sim's: of an all-gather what one GPU contributes. A collective NONE is one
    that ASTRA-sim does not know, such as a broadcast: it takes `compute_us`. `peer` is the GPU to
    which a message goes, or from which it comes.
    """

    kind: Kind
    after: tuple[int, ...] = ()
    compute_us: int = 0
    collective: Collective = Collective.NONE
    size_bytes: int = 0
    over: Over = None
    peer: int = 0
    tag: int = 0


@dataclass(frozen=True, slots=True)
class JobGraph:
    """The nodes of every GPU of a job, and its communicators by number.

    Two graphs are equal if they have the same content; `digest` stands for it.
    """

    name: str = field(compare=False)
    programs: tuple[tuple[GraphNode, ...], ...] = field(compare=False)
    communicators: Mapping[int, tuple[int, ...]] = field(compare=False, default_factory=dict)
    digest: str = ""

    def __post_init__(self) -> None:
        if not self.digest:
            text = repr((self.programs, sorted(self.communicators.items())))
            object.__setattr__(self, "digest", hashlib.sha256(text.encode()).hexdigest())

    def compute_ns(self, gpu: int) -> int:
        """How long a GPU computes."""
        return sum(duration_ns(x.compute_us) for x in self.programs[gpu] if x.kind is Kind.COMPUTE)


def duration_ns(compute_us: float) -> int:
    """ASTRA-sim reads whole microseconds, and a computation of nothing takes a nanosecond."""
    return int(compute_us) * 1000 or 1


def place_in_cycle(nodes: Sequence[GraphNode]) -> int | None:
    """The first node that waits for itself, directly or through others; None if none does."""
    waits = [len(node.after) for node in nodes]
    followers: list[list[int]] = [[] for _ in nodes]
    for number, node in enumerate(nodes):
        for earlier in node.after:
            followers[earlier].append(number)
    free = [number for number, count in enumerate(waits) if not count]
    for number in free:  # grows during the loop
        for follower in followers[number]:
            waits[follower] -= 1
            if not waits[follower]:
                free.append(follower)
    return next((number for number, count in enumerate(waits) if count), None)
