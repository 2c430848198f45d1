"""Which queue, direction and tree each stage of each chunk gets.

ASTRA-sim deals queues in turn, per dimension, from the first half of them (the
reducing way of an all-reduce), the last half (the gathering way) or all (other
collectives), and the two binary trees in turn, per collective and dimension.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from artist.astra.model.collectives import Cut, Half, Request, Stage
from artist.astra.model.messages import Kind
from artist.workload.layers import Collective


@dataclass(frozen=True, slots=True)
class Leg:
    """A stage with the lane (dimension, queue) it waits in.

    `direction` is 1 clockwise and -1 anticlockwise; `variant` is the tree's.
    """

    stage: Stage
    lane: tuple[int, int]
    direction: int = 1
    variant: int = 0


class QueueTurns:
    """Whose turn it is among the queues of one dimension."""

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
    """The streams of each collective of a program, in the order of issue.

    All NPUs issue the same collectives in the same order, so they share the legs.
    `queues` is the number of them per dimension.
    """

    def __init__(
        self, cuts: Mapping[Request, Cut], queues: int, collectives: tuple[Request, ...]
    ) -> None:
        self._cuts = cuts
        self._queues = queues
        self._collectives = collectives
        self._made: list[tuple[tuple[Leg, ...], ...]] = []
        self._turns: dict[int, QueueTurns] = {}
        self._trees: dict[tuple[Collective, int], int] = {}

    def streams(self, index: int) -> tuple[tuple[Leg, ...], ...]:
        """The streams of the collective issued as number `index`."""
        while len(self._made) <= index:
            self._made.append(self._make(self._collectives[len(self._made)]))
        return self._made[index]

    def _make(self, request: Request) -> tuple[tuple[Leg, ...], ...]:
        cut = self._cuts[request]
        return tuple(
            tuple([self._leg(request[0], stage) for stage in cut.stages]) for _ in range(cut.chunks)
        )

    def _leg(self, collective: Collective, stage: Stage) -> Leg:
        index = stage.group.index
        turns = self._turns.setdefault(index, QueueTurns(self._queues))
        queue, direction = turns.next(stage.half)
        variant = 0
        if stage.group.algorithm.kind is Kind.TREE:
            variant = self._trees.get((collective, index), 0)
            self._trees[collective, index] = 1 - variant
        return Leg(stage, (index, queue), direction, variant)
