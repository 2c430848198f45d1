"""One iteration as ASTRA-sim's Chakra traces hold it: nodes and what each waits for.

A GPU computes one thing and communicates one thing at a time. Whenever something
ends, the node with the lowest number that waits for nothing more begins
(ASTRA-sim's workload layer). `nodes` orders an iteration, `schedule` plays it.

    DATA       forward over all layers; backwards weight gradient, which frees the layer's
               collective, then (but for the first layer) input gradient
    FSDP       as DATA, but before each layer, in both directions, its weights are gathered
               (arXiv:2304.11277): at most one layer ahead of the one that computes
    LAYERWISE  a layer's forward and input-gradient collective ends before the next layer
               begins; that of its weight gradient delays nothing but the iteration's end.
               The order of HYBRID_DATA_MODEL in ASTRA-sim's text converter
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from artist.errors import ConfigError
from artist.workload.layers import Collective, Layer, Parallelism, Phase, Scope, Workload


@dataclass(frozen=True, slots=True)
class Node:
    """A computation (`collective` is None) or a collective of `comm_bytes`.

    `after` holds the numbers of the nodes that must have ended.
    """

    name: str
    after: tuple[int, ...]
    compute_us: float = 0.0
    collective: Collective | None = None
    comm_bytes: int = 0
    scope: Scope = Scope.ALL


@dataclass(frozen=True, slots=True)
class Span:
    """When a node ran, in the unit of its duration."""

    start: float
    end: float


def nodes(workload: Workload) -> tuple[Node, ...]:
    """The nodes of one iteration, in order of their numbers.

    Raises:
        ConfigError: a MICRO workload, which is no training iteration.
    """
    found = _Builder()
    match workload.parallelism:
        case Parallelism.DATA:
            _data(found, workload.layers)
        case Parallelism.FSDP:
            _fsdp(found, workload.layers)
        case Parallelism.LAYERWISE:
            _layerwise(found, workload.layers)
        case _:
            raise ConfigError(
                f"workload {workload.name!r} is {workload.parallelism}: it has no training "
                "iteration; give a model's workload"
            )
    return tuple(found.nodes)


def schedule(found: Sequence[Node], duration: Callable[[Node], float]) -> list[Span]:
    """When each node runs, with durations in any one unit."""
    waits = [len(node.after) for node in found]
    followers: list[list[int]] = [[] for _ in found]
    for number, node in enumerate(found):
        for earlier in node.after:
            followers[earlier].append(number)
    ready: tuple[list[int], list[int]] = ([], [])
    for number, node in enumerate(found):
        if not waits[number]:
            heapq.heappush(ready[node.collective is not None], number)
    spans: list[Span] = [Span(0.0, 0.0)] * len(found)
    running: list[tuple[float, int]] = []
    busy = [False, False]
    now = 0.0
    while True:
        for kind in (0, 1):
            if ready[kind] and not busy[kind]:
                number = heapq.heappop(ready[kind])
                spans[number] = Span(now, now + duration(found[number]))
                heapq.heappush(running, (spans[number].end, number))
                busy[kind] = True
        if not running:
            return spans
        now, number = heapq.heappop(running)
        busy[found[number].collective is not None] = False
        for follower in followers[number]:
            waits[follower] -= 1
            if not waits[follower]:
                heapq.heappush(ready[found[follower].collective is not None], follower)


class _Builder:
    """Appends nodes and hands out their numbers."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []

    def compute(self, name: str, phase: Phase, *after: int | None) -> int:
        return self._add(Node(name, _known(after), compute_us=phase.compute_us))

    def collective(self, name: str, phase: Phase, *after: int | None) -> int | None:
        """Nothing for NONE, which is no collective outside ASTRA-sim's text format."""
        if phase.collective is Collective.NONE:
            return None
        node = Node(name, _known(after), 0.0, phase.collective, phase.comm_bytes, scope=phase.scope)
        return self._add(node)

    def _add(self, node: Node) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1


def _known(after: Sequence[int | None]) -> tuple[int, ...]:
    return tuple(number for number in after if number is not None)


def _data(found: _Builder, layers: tuple[Layer, ...]) -> None:
    last: int | None = None
    for layer in layers:
        last = found.compute(f"{layer.name} forward", layer.forward, last)
    for index in reversed(range(len(layers))):
        layer = layers[index]
        last = found.compute(f"{layer.name} weight gradient", layer.weight_grad, last)
        reduced = layer.weight_grad
        if reduced.collective is Collective.NONE:
            # The text format's NONE is an all-reduce.
            reduced = Phase(0.0, Collective.ALL_REDUCE, reduced.comm_bytes)
        found.collective(f"{layer.name} gradient", reduced, last)
        if index:
            last = found.compute(f"{layer.name} input gradient", layer.input_grad, last)


def _fsdp(found: _Builder, layers: tuple[Layer, ...]) -> None:
    """A layer's weights are gathered once the layer two before it has been computed."""
    done: list[int | None] = [None, None]
    for layer in layers:
        gathered = found.collective(f"{layer.name} gather", layer.forward, done[-2])
        done.append(found.compute(f"{layer.name} forward", layer.forward, done[-1], gathered))
    for index in reversed(range(len(layers))):
        layer = layers[index]
        name = f"{layer.name} gather again"
        gathered = found.collective(name, layer.input_grad, done[-2])
        last = found.compute(f"{layer.name} weight gradient", layer.weight_grad, done[-1], gathered)
        found.collective(f"{layer.name} gradient", layer.weight_grad, last)
        if index:
            last = found.compute(f"{layer.name} input gradient", layer.input_grad, last)
        done.append(last)


def _layerwise(found: _Builder, layers: tuple[Layer, ...]) -> None:
    last: int | None = None
    told: int | None = None
    for layer in layers:
        last = found.compute(f"{layer.name} forward", layer.forward, last, told)
        told = found.collective(f"{layer.name} output", layer.forward, last)
    for index in reversed(range(len(layers))):
        layer = layers[index]
        if index:
            last = found.compute(f"{layer.name} input gradient", layer.input_grad, last, told)
            told = found.collective(f"{layer.name} input", layer.input_grad, last)
            waits: tuple[int | None, ...] = (last,)
        else:
            waits = (last, told)
        last = found.compute(f"{layer.name} weight gradient", layer.weight_grad, *waits)
        found.collective(f"{layer.name} gradient", layer.weight_grad, last)
