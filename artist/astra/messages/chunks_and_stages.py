"""How ASTRA-sim cuts a collective into chunks, and a chunk into stages.

A collective of some bytes becomes equal *chunks* (`chunks`). Each chunk passes through the same
*stages* (`stages`), one group of NPUs after another. For example, an all-reduce over two
dimensions of 2 NPUs with `localBWAware` and a chunk of 4000 bytes has three stages:

    reduce-scatter   dimension 0   4000 bytes in, 2000 out
    all-reduce       dimension 1   2000 bytes in, 2000 out
    all-gather       dimension 0   2000 bytes in, 4000 out

`artist.astra.algorithms` says which messages a stage sends and how long it takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from artist.astra.messages.groups import AnyGroup, GroupFamily
from artist.workload.graph import Over
from artist.workload.layers import Collective

LOCAL_BW_AWARE = "localBWAware"

Request = tuple[Collective, int, Over]
"""A collective, its bytes and who takes part, as a workload asks for it."""


class Half(Enum):
    """The half of a group's queues that a stage may use.

    An all-reduce uses the first half to reduce and the last half to gather. With two queues or
    more, its two directions therefore never block each other.
    """

    ANY = "any"
    FIRST = "first"
    LAST = "last"


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of a chunk: `collective` over `group`, with `input_bytes` on every NPU."""

    group: AnyGroup
    collective: Collective
    input_bytes: int
    half: Half = Half.ANY

    @property
    def share_bytes(self) -> int:
        """Bytes of each message where every message has the same size (ring and direct)."""
        if self.collective is Collective.ALL_GATHER:
            return self.input_bytes
        return self.input_bytes // self.group.nodes

    @property
    def output_bytes(self) -> int:
        """Bytes on each NPU afterwards.

        In ASTRA-sim a double binary tree ends with the bytes it began with, whatever the
        collective.
        """
        if self.group.algorithm.family is not GroupFamily.TREE:
            if self.collective is Collective.REDUCE_SCATTER:
                return self.input_bytes // self.group.nodes
            if self.collective is Collective.ALL_GATHER:
                return self.input_bytes * self.group.nodes
        return self.input_bytes


@dataclass(frozen=True, slots=True)
class Cut:
    """A collective after cutting: the number of its equal chunks, and the stages of each."""

    chunks: int
    stages: tuple[Stage, ...]


def actual(collective: Collective) -> Collective:
    """The collective that ASTRA-sim runs: its text converter turns NONE into an all-reduce."""
    return Collective.ALL_REDUCE if collective is Collective.NONE else collective


def chunks(
    collective: Collective, size_bytes: int, splits: int, total_npus: int
) -> tuple[int, int]:
    """(number of chunks, bytes of each).

    A chunk has at least one byte per NPU, except in an all-gather. A remainder becomes one
    more full chunk: 1000003 bytes in 4 splits are 5 chunks of 250000.
    """
    chunk = size_bytes // splits
    if collective is not Collective.ALL_GATHER and chunk < total_npus:
        return splits, total_npus
    return -(-size_bytes // chunk), chunk


def stages(
    collective: Collective, chunk_bytes: int, over: Sequence[AnyGroup], optimization: str
) -> tuple[Stage, ...]:
    """The stages of one chunk. Each begins with the bytes that the stage before it left."""
    if collective is Collective.ALL_REDUCE and optimization == LOCAL_BW_AWARE:
        *inner, outermost = over
        steps = [(g, Collective.REDUCE_SCATTER, Half.FIRST) for g in inner]
        steps.append((outermost, Collective.ALL_REDUCE, Half.FIRST))
        steps += [(g, Collective.ALL_GATHER, Half.LAST) for g in reversed(inner)]
    else:
        order = reversed(over) if collective is Collective.ALL_GATHER else over
        steps = [(g, collective, Half.ANY) for g in order]
    made: list[Stage] = []
    for group, step, half in steps:
        size = made[-1].output_bytes if made else chunk_bytes
        made.append(Stage(group, step, size, half))
    return tuple(made)
