"""Execution traces as ASTRA-sim 2.x reads them: a training iteration as a graph.

A trace file is a metadata message and then one message per node, each with its
length before it, in protobuf's wire format. Only the fields that ASTRA-sim reads are
written; `NODE_FIELDS` and its neighbours give their numbers in Chakra's schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

from artist.workload.layers import Collective, Layer, Parallelism, Phase, Workload

SCHEMA_VERSION = "1.0.2-chakra.0.0.4"


class NodeKind(IntEnum):
    """Kinds of nodes, by Chakra's numbers."""

    COMPUTE = 4
    COLLECTIVE = 7


COLLECTIVE_CODES = {
    # What needs no collective is still one, of no bytes: so does ASTRA-sim's own converter.
    Collective.NONE: 0,
    Collective.ALL_REDUCE: 0,
    Collective.ALL_GATHER: 2,
    Collective.ALL_TO_ALL: 6,
    Collective.REDUCE_SCATTER: 7,
}

_METADATA = {"attribute": 2}
NODE_FIELDS = {"id": 1, "name": 2, "kind": 3, "parents": 5, "duration_us": 7, "attribute": 10}
ATTRIBUTE_FIELDS = {"name": 1, "int64": 9, "text": 29}

_VARINT, _BYTES = 0, 2


@dataclass(frozen=True, slots=True)
class Node:
    """One operation of an NPU. `collective` and `comm_bytes` are those of a collective."""

    id: int
    name: str
    kind: NodeKind
    parents: tuple[int, ...] = ()
    duration_us: int = 0
    collective: Collective = Collective.NONE
    comm_bytes: int = 0


def encode_workload(workload: Workload, passes: int = 1) -> bytes:
    """The trace file of a workload; all NPUs run the same one.

    Raises:
        ValueError: a compute time is not in whole microseconds.
    """
    schema = _attribute("schema", _text(ATTRIBUTE_FIELDS["text"], SCHEMA_VERSION))
    messages = [_nested(_METADATA["attribute"], schema)]
    messages += [encode_node(node) for node in nodes(workload, passes)]
    return b"".join(_varint(len(message)) + message for message in messages)


def nodes(workload: Workload, passes: int = 1) -> Iterator[Node]:
    """The nodes of a workload in the order ASTRA-sim's scheduler is to see them."""
    builder = _Builder()
    if workload.parallelism is Parallelism.MICRO:
        for _ in range(passes):
            for layer in workload.layers:
                yield builder.collective(layer, ())
        return
    yield from _data_parallel(workload.layers, passes, builder)


def _data_parallel(layers: Sequence[Layer], passes: int, builder: _Builder) -> Iterator[Node]:
    gradients: dict[int, int] = {}
    for _ in range(passes):
        last: tuple[int, ...] = ()
        for index, layer in enumerate(layers):
            # A layer runs again once its own gradient of the pass before has arrived.
            waits = last + ((gradients[index],) if index in gradients else ())
            yield (node := builder.compute(layer, "forward", layer.forward, waits))
            last = (node.id,)
        for index in reversed(range(len(layers))):
            layer = layers[index]
            yield (node := builder.compute(layer, "weight-grad", layer.weight_grad, last))
            last = (node.id,)
            yield (reduce := builder.collective(layer, last))
            gradients[index] = reduce.id
            if index:  # nothing lies before the first layer that would need its input's gradient
                yield (node := builder.compute(layer, "input-grad", layer.input_grad, last))
                last = (node.id,)


class _Builder:
    """Numbers nodes in the order in which they are made."""

    def __init__(self) -> None:
        self._next_id = 0

    def compute(self, layer: Layer, what: str, phase: Phase, parents: tuple[int, ...]) -> Node:
        duration_us = int(phase.compute_us)
        if duration_us != phase.compute_us:
            raise ValueError(f"{what} of layer {layer.name!r} takes {phase.compute_us} us")
        name = f"{layer.name}/{what}"
        return Node(self._id(), name, NodeKind.COMPUTE, parents, duration_us)

    def collective(self, layer: Layer, parents: tuple[int, ...]) -> Node:
        phase = layer.weight_grad
        name = f"{layer.name}/{phase.collective}"
        kind = NodeKind.COLLECTIVE
        return Node(self._id(), name, kind, parents, 0, phase.collective, phase.comm_bytes)

    def _id(self) -> int:
        self._next_id += 1
        return self._next_id - 1


def encode_node(node: Node) -> bytes:
    """One node's message; fields of value zero are left out, as protobuf does."""
    parts = [
        _number(NODE_FIELDS["id"], node.id) if node.id else b"",
        _text(NODE_FIELDS["name"], node.name),
        _number(NODE_FIELDS["kind"], node.kind),
    ]
    if node.parents:
        parts.append(_nested(NODE_FIELDS["parents"], b"".join(map(_varint, node.parents))))
    if node.kind is NodeKind.COMPUTE:
        parts.append(
            _number(NODE_FIELDS["duration_us"], node.duration_us) if node.duration_us else b""
        )
    else:
        values = {"comm_type": COLLECTIVE_CODES[node.collective], "comm_size": node.comm_bytes}
        for name, value in values.items():
            attribute = _attribute(name, _number(ATTRIBUTE_FIELDS["int64"], value))
            parts.append(_nested(NODE_FIELDS["attribute"], attribute))
    return b"".join(parts)


def _attribute(name: str, value: bytes) -> bytes:
    return _text(ATTRIBUTE_FIELDS["name"], name) + value


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3 | _VARINT) + _varint(value)


def _text(field: int, value: str) -> bytes:
    return _nested(field, value.encode())


def _nested(field: int, payload: bytes) -> bytes:
    return _varint(field << 3 | _BYTES) + _varint(len(payload)) + payload


def _varint(value: int) -> bytes:
    """Seven bits a byte, lowest first; the top bit says that more follow."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
