"""Which queue, direction and tree each stage of each chunk gets.

ASTRA-sim hands out the queues of a dimension in turn. An all-reduce takes them from the first half
of the queues to reduce and from the last half to gather; other collectives take them from all
queues. The two binary trees are handed out in turn too, per collective and dimension.

A *stream* is one chunk on its way: a tuple of legs, one per stage.
"""

from __future__ import annotations

from dataclasses import dataclass

from artist.astra.messages.chunks_and_stages import Cut, Half, Stage
from artist.astra.messages.groups import GroupFamily
from artist.workload.layers import Collective

Lane = tuple[int, int]
"""(dimension, queue): where a stage waits for its turn."""


@dataclass(frozen=True, slots=True)
class Leg:
    """A stage of a stream with its lane.

    `direction` is 1 clockwise and -1 anticlockwise; `variant` is the number of the binary tree.
    """

    stage: Stage
    lane: Lane
    direction: int = 1
    variant: int = 0


class QueueTurns:
    """Hands out the queues of one dimension in turn."""

    def __init__(self, queues: int) -> None:
        self._queues = queues
        self._any = 0
        self._first = 0
        self._last = queues // 2

    def next(self, half: Half) -> tuple[int, int]:
        """(queue, direction) for a stage."""
        middle = self._queues // 2
        match half:
            case Half.FIRST:
                queue = self._first
                self._first = queue + 1 if queue + 1 < middle else 0
                return queue, 1
            case Half.LAST:
                queue = self._last
                self._last = queue + 1 if queue + 1 < self._queues else middle
                return queue, -1
            case Half.ANY:
                queue = self._any
                self._any = (queue + 1) % self._queues
                return queue, -1 if self._queues > 1 and queue >= middle else 1


class StreamMaker:
    """The streams of each collective that an NPU issues, in the order of issue.

    `queues` is the number of queues per dimension.
    """

    def __init__(self, queues: int) -> None:
        self._queues = queues
        self._turns: dict[int, QueueTurns] = {}
        self._trees: dict[tuple[Collective, int], int] = {}

    def streams(self, collective: Collective, cut: Cut) -> tuple[tuple[Leg, ...], ...]:
        """The streams of the collective that is issued next."""
        return tuple(
            tuple([self._leg(collective, stage) for stage in cut.stages]) for _ in range(cut.chunks)
        )

    def _leg(self, collective: Collective, stage: Stage) -> Leg:
        index = stage.group.index
        turns = self._turns.setdefault(index, QueueTurns(self._queues))
        queue, direction = turns.next(stage.half)
        variant = 0
        if stage.group.algorithm.family is GroupFamily.TREE:
            variant = self._trees.get((collective, index), 0)
            self._trees[collective, index] = 1 - variant
        return Leg(stage, (index, queue), direction, variant)
