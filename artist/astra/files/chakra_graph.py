"""An iteration as a graph of Chakra nodes, and the workload that such a graph stands for.

For two layers of data-parallel training (`->` means: is a parent of):

    forward 0 -> forward 1 -> weight-grad 1 -> input-grad 1 -> weight-grad 0
                              weight-grad 1 -> collective 1    weight-grad 0 -> collective 0

In the next pass, forward i also waits for collective i of this one. ASTRA-sim's own converter
of text workloads writes the same graph. `workload_of` refuses every other graph; it guesses
nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from artist.astra.files.chakra_schema import InexpressibleTraceError, Node, NodeKind
from artist.workload.layers import Collective, Layer, Parallelism, Phase, Workload


def nodes(workload: Workload, passes: int = 1) -> Iterator[Node]:
    """The nodes of a workload, in the order in which ASTRA-sim's scheduler has to see them.

    Raises:
        ValueError: a compute time is not in whole microseconds.
    """
    numbering = _Numbering()
    if workload.parallelism is Parallelism.MICRO:
        for _ in range(passes):
            for layer in workload.layers:
                yield numbering.collective(layer, ())
        return
    yield from _data_parallel_nodes(workload.layers, passes, numbering)


def workload_of(graph: Sequence[Node], name: str) -> tuple[Workload, int]:
    """The workload that has this graph, and its number of passes.

    A graph of collectives alone becomes one pass of a MICRO workload: there the collectives of all
    passes are free at once, so passes cannot be distinguished.

    Raises:
        InexpressibleTraceError: no workload of artist has this graph.
    """
    if all(node.kind is NodeKind.COLLECTIVE for node in graph):
        layers = tuple(
            Layer(str(i), Phase(), Phase(), _gradient(node)) for i, node in enumerate(graph)
        )
        workload, passes = Workload(name, Parallelism.MICRO, layers), 1
    else:
        workload, passes = _data_parallel_workload(graph, name)
    _check_same(graph, nodes(workload, passes))
    return workload, passes


def _data_parallel_nodes(
    layers: Sequence[Layer], passes: int, numbering: _Numbering
) -> Iterator[Node]:
    """The nodes of some passes of data-parallel training, in the order of their ids."""
    gradients: dict[int, int] = {}
    for _ in range(passes):
        last: tuple[int, ...] = ()
        for index, layer in enumerate(layers):
            # A layer runs again once its own gradient of the pass before has arrived.
            waits = last + ((gradients[index],) if index in gradients else ())
            yield (node := numbering.compute(layer, "forward", layer.forward, waits))
            last = (node.id,)
        for index in reversed(range(len(layers))):
            layer = layers[index]
            yield (node := numbering.compute(layer, "weight-grad", layer.weight_grad, last))
            last = (node.id,)
            yield (reduce := numbering.collective(layer, last))
            gradients[index] = reduce.id
            if index:  # no layer before the first one needs the gradient of its input
                yield (node := numbering.compute(layer, "input-grad", layer.input_grad, last))
                last = (node.id,)


class _Numbering:
    """Makes nodes and numbers them in the order in which they are made."""

    def __init__(self) -> None:
        self._next_id = 0

    def compute(self, layer: Layer, step: str, phase: Phase, parents: tuple[int, ...]) -> Node:
        duration_us = int(phase.compute_us)
        if duration_us != phase.compute_us:
            raise ValueError(f"{step} of layer {layer.name!r} takes {phase.compute_us} us")
        name = f"{layer.name}/{step}"
        return Node(self._id(), name, NodeKind.COMPUTE, parents, duration_us)

    def collective(self, layer: Layer, parents: tuple[int, ...]) -> Node:
        phase = layer.weight_grad
        name = f"{layer.name}/{phase.collective}"
        kind = NodeKind.COLLECTIVE
        return Node(self._id(), name, kind, parents, 0, phase.collective, phase.comm_bytes)

    def _id(self) -> int:
        self._next_id += 1
        return self._next_id - 1


def _data_parallel_workload(graph: Sequence[Node], name: str) -> tuple[Workload, int]:
    """The only workload that the order of the nodes allows; `_check_same` checks the rest.

    The first collective belongs to the last layer. With L layers it is node L + 1, after L
    forward passes and a weight gradient.
    """
    kinds = [node.kind for node in graph]
    count = kinds.index(NodeKind.COLLECTIVE) - 1 if NodeKind.COLLECTIVE in kinds else 0
    size = 4 * count - 1  # forward, weight gradient, collective and all but one input gradient
    if count < 1 or len(graph) % size:
        raise InexpressibleTraceError(
            f"{len(graph)} nodes are not whole passes over layers, each with a forward pass, its "
            "gradients and one collective; artist answers only for data-parallel training"
        )
    layers = []
    for index in range(count):
        at = count + 3 * (count - 1 - index)
        weight_grad = _gradient(graph[at + 1], graph[at].duration_us)
        input_grad = Phase(float(graph[at + 2].duration_us) if index else 0.0)
        forward = Phase(float(graph[index].duration_us))
        layers.append(Layer(str(index), forward, input_grad, weight_grad))
    return Workload(name, Parallelism.DATA, tuple(layers)), len(graph) // size


def _gradient(node: Node, compute_us: int = 0) -> Phase:
    return Phase(float(compute_us), node.collective, node.comm_bytes)


def _check_same(graph: Sequence[Node], expected: Iterator[Node]) -> None:
    """Compare two graphs, except for names and the values of ids."""
    places = {node.id: place for place, node in enumerate(graph)}
    if len(places) < len(graph):
        raise InexpressibleTraceError("two nodes have the same id")
    for got, want in zip_longest(graph, expected):
        if got is None or want is None or _facts(got, places) != _facts(want):
            raise InexpressibleTraceError(
                f"node {got.name if got else ''!r} is not what data-parallel training has there: "
                "artist answers for traces as it renders them"
            )


def _facts(node: Node, places: dict[int, int] | None = None) -> tuple[object, ...]:
    """What must be equal. With `places`, ids of parents are replaced by places in the graph."""
    parents = [places.get(x, -1) if places is not None else x for x in node.parents]
    collective = node.collective
    # NONE and ALL_REDUCE have the same code in a file.
    if node.kind is NodeKind.COLLECTIVE and collective is Collective.NONE:
        collective = Collective.ALL_REDUCE
    return (node.kind, sorted(parents), node.duration_us, collective, node.comm_bytes)
