"""How ASTRA-sim cuts a collective into chunks and a chunk into stages.

A collective of `size` bytes becomes `chunks(...)` equal chunks; each passes
through the same `stages(...)`, one group after another. What a stage puts on
the wire is `messages(...)` and `traffic(...)`; how long it takes is told elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from math import prod

from artist.astra.model.messages import Group, Kind, Network
from artist.workload.layers import Collective

LOCAL_BW_AWARE = "localBWAware"

Request = tuple[Collective, int]
"""A collective and its bytes, as a workload asks for it."""


class Half(Enum):
    """Which of a group's queues a stage may use, so that both directions never block each other."""

    ANY = "any"
    FIRST = "first"
    LAST = "last"


@dataclass(frozen=True, slots=True)
class Stage:
    """One phase of a chunk: `collective` over `group` with `input_bytes` on every NPU."""

    group: Group
    collective: Collective
    input_bytes: int
    half: Half = Half.ANY

    @property
    def output_bytes(self) -> int:
        """Bytes per NPU afterwards; a double binary tree always ends with what it got."""
        if self.group.algorithm.kind is not Kind.TREE:
            if self.collective is Collective.REDUCE_SCATTER:
                return self.input_bytes // self.group.nodes
            if self.collective is Collective.ALL_GATHER:
                return self.input_bytes * self.group.nodes
        return self.input_bytes


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a stage: `size_bytes` to the NPU `distance` positions on."""

    distance: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Cut:
    """A collective cut up: so many equal chunks, each with these stages."""

    chunks: int
    stages: tuple[Stage, ...]


def actual(collective: Collective) -> Collective:
    """The collective that ASTRA-sim runs: its text converter takes NONE for an all-reduce."""
    return Collective.ALL_REDUCE if collective is Collective.NONE else collective


def chunks(
    collective: Collective, size_bytes: int, splits: int, total_npus: int
) -> tuple[int, int]:
    """(number of chunks, bytes of each).

    All but an all-gather have chunks of at least one byte per NPU. A remainder
    becomes one more full chunk: 1000003 bytes in 4 splits are 5 chunks of 250000.
    """
    chunk = size_bytes // splits
    if collective is not Collective.ALL_GATHER and chunk < total_npus:
        return splits, total_npus
    return -(-size_bytes // chunk), chunk


def stages(
    collective: Collective, chunk_bytes: int, over: tuple[Group, ...], optimization: str
) -> tuple[Stage, ...]:
    """The stages of one chunk, each starting with what the one before left."""
    if collective is Collective.ALL_REDUCE and optimization == LOCAL_BW_AWARE:
        *inner, outermost = over
        steps = [(g, Collective.REDUCE_SCATTER, Half.FIRST) for g in inner]
        steps.append((outermost, Collective.ALL_REDUCE, Half.FIRST))
        steps += [(g, Collective.ALL_GATHER, Half.LAST) for g in reversed(inner)]
    else:
        order = reversed(over) if collective is Collective.ALL_GATHER else over
        steps = [(g, collective, Half.ANY) for g in order]
    found: list[Stage] = []
    for group, step, half in steps:
        size = found[-1].output_bytes if found else chunk_bytes
        found.append(Stage(group, step, size, half))
    return tuple(found)


def share_bytes(stage: Stage) -> int:
    """Bytes of each message of a ring or direct stage."""
    if stage.collective is Collective.ALL_GATHER:
        return stage.input_bytes
    return stage.input_bytes // stage.group.nodes


def ring_messages(stage: Stage) -> int:
    """Messages that each NPU sends in a ring stage. An all-to-all is forwarded: quadratic."""
    nodes = stage.group.nodes
    match stage.collective:
        case Collective.ALL_REDUCE:
            return 2 * (nodes - 1)
        case Collective.ALL_TO_ALL:
            return nodes * (nodes - 1) // 2
        case _:
            return nodes - 1


def halving_doubling_messages(stage: Stage) -> tuple[Message, ...]:
    """What each NPU exchanges with the partner `distance` away, in order.

    A byte that does not halve evenly is lost once more where ASTRA-sim turns
    from halving to doubling, hence the step over the turn.
    """
    nodes = stage.group.nodes
    steps = nodes.bit_length() - 1
    if stage.collective is Collective.ALL_GATHER:
        size, distance = stage.input_bytes, nodes // 2
        return _doubling(size, distance, steps)
    found: list[Message] = []
    size = stage.input_bytes // 2
    for step in range(steps):
        found.append(Message(1 << step, size))
        size //= 2
    if stage.collective is Collective.ALL_REDUCE:
        found += _doubling(size * 2, nodes // 2, steps)
    return tuple(found)


def _doubling(size: int, distance: int, steps: int) -> tuple[Message, ...]:
    return tuple(Message(distance >> step, size << step) for step in range(steps))


def smallest_message_bytes(stage: Stage) -> int:
    """Bytes of the smallest message of a stage; ASTRA-sim dies of one without bytes."""
    match stage.group.algorithm.kind:
        case Kind.TREE:
            return stage.input_bytes
        case Kind.HALVING_DOUBLING:
            return min(message.size_bytes for message in halving_doubling_messages(stage))
        case _:
            return share_bytes(stage)


def traffic(stage: Stage, network: Network) -> tuple[int, ...]:
    """Bytes that one NPU sends per dimension in a stage.

    The mean over the NPUs of a tree, whose n - 1 edges carry the chunk up and down.
    """
    group = stage.group
    sent = [0] * len(network.npus)
    match group.algorithm.kind:
        case Kind.TREE:
            sent[group.index] = 2 * (group.nodes - 1) * stage.input_bytes // group.nodes
        case Kind.HALVING_DOUBLING:
            for message in halving_doubling_messages(stage):
                sent[network.route(group, message.distance)[0]] += message.size_bytes
        case Kind.RING:
            sent[network.route(group, 1)[0]] = ring_messages(stage) * share_bytes(stage)
        case Kind.DIRECT:
            waves = 2 if stage.collective is Collective.ALL_REDUCE else 1
            for dimension, peers in _peers_by_dimension(group, network):
                sent[dimension] = waves * peers * share_bytes(stage)
    return tuple(sent)


def _peers_by_dimension(group: Group, network: Network) -> list[tuple[int, int]]:
    if not group.algorithm.flat:
        return [(group.index, group.nodes - 1)]
    return [
        (dimension, (nodes - 1) * prod(network.npus[dimension + 1 :]))
        for dimension, nodes in enumerate(network.npus)
    ]
