"""The graph of one iteration, as in ASTRA-sim's Chakra traces: nodes, and what each waits for.

`nodes` makes the graph of a workload, `schedule` computes when each node runs. A node is a
computation or a collective. A GPU runs at most one computation and at most one collective at a
time. Whenever one ends, the ready node with the lowest number begins (ASTRA-sim's workload
layer); a node is ready when all nodes that it waits for have ended.

The order of the nodes depends on the parallelism:

- DATA: forward through all layers. Then backward through all layers: the weight gradient, after
  which the layer's collective can begin, then the input gradient (not for the first layer).
- FSDP: as DATA, but the weights of a layer are gathered before it computes, in both directions.
  They are gathered at most one layer ahead of the computation (arXiv:2304.11277), and reduced when
  the whole layer, a block, has been computed.
- LAYERWISE: the collectives of a layer's forward and input-gradient pass end before the next
  layer begins. The collective of its weight gradient delays only the end of the iteration. This
  is the order of HYBRID_DATA_MODEL in ASTRA-sim's text converter.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from artist.errors import ConfigError
from artist.workload.graph import followers_of
from artist.workload.layers import Collective, Layer, Parallelism, Phase, Scope, Workload


@dataclass(frozen=True, slots=True)
class IterationNode:
    """A computation (`collective` is None) or a collective of `comm_bytes`.

    `after` are the numbers of the nodes that it waits for.
    """

    name: str
    after: tuple[int, ...]
    compute_us: float = 0.0
    collective: Collective | None = None
    comm_bytes: int = 0
    scope: Scope = Scope.ALL


@dataclass(frozen=True, slots=True)
class Span:
    """When a node runs, in the unit of its duration."""

    start: float
    end: float


def nodes(workload: Workload) -> tuple[IterationNode, ...]:
    """The nodes of one iteration. The number of a node is its index.

    Raises:
        ConfigError: the workload is MICRO, GRAPH or STAGED.
    """
    graph = _Builder()
    match workload.parallelism:
        case Parallelism.DATA:
            _data(graph, workload.layers)
        case Parallelism.FSDP:
            _fsdp(graph, workload.layers)
        case Parallelism.LAYERWISE:
            _layerwise(graph, workload.layers)
        case Parallelism.MICRO | Parallelism.GRAPH:
            raise ConfigError(
                f"workload {workload.name!r} is {workload.parallelism}: it has no training "
                "iteration; give a model's workload"
            )
        case Parallelism.STAGED:
            raise ConfigError(
                f"workload {workload.name!r} is divided along axes or has settings of such jobs "
                "(expert, pipeline, recompute, sharded, ...), for which no list of collectives is "
                "rendered; leave these settings out, or ask artist latency"
            )
    return tuple(graph.nodes)


def schedule(
    graph: Sequence[IterationNode], duration: Callable[[IterationNode], float]
) -> list[Span]:
    """When each node runs. Durations may have any unit."""
    waits = [len(node.after) for node in graph]
    followers = followers_of([node.after for node in graph])
    # Index 0 is the lane of computations, index 1 the lane of collectives.
    ready: tuple[list[int], list[int]] = ([], [])
    for number, node in enumerate(graph):
        if not waits[number]:
            heapq.heappush(ready[node.collective is not None], number)
    spans: list[Span] = [Span(0.0, 0.0)] * len(graph)
    running: list[tuple[float, int]] = []
    busy = [False, False]
    now = 0.0
    while True:
        for lane in (0, 1):
            if ready[lane] and not busy[lane]:
                number = heapq.heappop(ready[lane])
                spans[number] = Span(now, now + duration(graph[number]))
                heapq.heappush(running, (spans[number].end, number))
                busy[lane] = True
        if not running:
            return spans
        now, number = heapq.heappop(running)
        busy[graph[number].collective is not None] = False
        for follower in followers[number]:
            waits[follower] -= 1
            if not waits[follower]:
                heapq.heappush(ready[graph[follower].collective is not None], follower)


class _Builder:
    """Appends nodes and returns their numbers. A node waits for the `after` that are not None."""

    def __init__(self) -> None:
        self.nodes: list[IterationNode] = []

    def compute(self, name: str, phase: Phase, *after: int | None) -> int:
        return self._add(IterationNode(name, _without_none(after), compute_us=phase.compute_us))

    def collective(self, name: str, phase: Phase, *after: int | None) -> int | None:
        """The number of the new node; None and no node if the phase has no collective."""
        if phase.collective is Collective.NONE:
            return None
        waits = _without_none(after)
        node = IterationNode(
            name, waits, 0.0, phase.collective, phase.comm_bytes, scope=phase.scope
        )
        return self._add(node)

    def _add(self, node: IterationNode) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1


def _without_none(after: Sequence[int | None]) -> tuple[int, ...]:
    return tuple(number for number in after if number is not None)


def _data(graph: _Builder, layers: tuple[Layer, ...]) -> None:
    """The gradient of a layer is reduced during the backward passes of the layers before it."""
    last: int | None = None
    for layer in layers:
        last = graph.compute(f"{layer.name} forward", layer.forward, last)
    for index in reversed(range(len(layers))):
        layer = layers[index]
        last = graph.compute(f"{layer.name} weight gradient", layer.weight_grad, last)
        reduced = layer.weight_grad
        if reduced.collective is Collective.NONE:
            # ASTRA-sim runs the NONE of its text format as an all-reduce.
            reduced = Phase(0.0, Collective.ALL_REDUCE, reduced.comm_bytes)
        graph.collective(f"{layer.name} gradient", reduced, last)
        if index:
            last = graph.compute(f"{layer.name} input gradient", layer.input_grad, last)


def _fsdp(graph: _Builder, layers: tuple[Layer, ...]) -> None:
    """A layer's weights are gathered when the layer two before it has been computed."""
    done: list[int | None] = [None, None]
    for layer in layers:
        gathered = graph.collective(f"{layer.name} gather", layer.forward, done[-2])
        done.append(graph.compute(f"{layer.name} forward", layer.forward, done[-1], gathered))
    done = [done[-1], done[-1]]  # nothing is gathered again before the backward pass begins
    for index in reversed(range(len(layers))):
        layer = layers[index]
        name = f"{layer.name} gather again"
        gathered = graph.collective(name, layer.input_grad, done[-2])
        last = graph.compute(f"{layer.name} weight gradient", layer.weight_grad, done[-1], gathered)
        if index:
            last = graph.compute(f"{layer.name} input gradient", layer.input_grad, last)
        # The gradients of a unit are those of all its matrices: complete when it has been computed.
        graph.collective(f"{layer.name} gradient", layer.weight_grad, last)
        done.append(last)


def _layerwise(graph: _Builder, layers: tuple[Layer, ...]) -> None:
    """The next layer waits for the collectives of activations, not for those of gradients."""
    # The last computation, and the last collective that the next layer waits for.
    last: int | None = None
    sent: int | None = None
    for layer in layers:
        last = graph.compute(f"{layer.name} forward", layer.forward, last, sent)
        sent = graph.collective(f"{layer.name} output", layer.forward, last)
    for index in reversed(range(len(layers))):
        layer = layers[index]
        if index:
            last = graph.compute(f"{layer.name} input gradient", layer.input_grad, last, sent)
            sent = graph.collective(f"{layer.name} input", layer.input_grad, last)
            waits: tuple[int | None, ...] = (last,)
        else:
            waits = (last, sent)
        last = graph.compute(f"{layer.name} weight gradient", layer.weight_grad, *waits)
        graph.collective(f"{layer.name} gradient", layer.weight_grad, last)
