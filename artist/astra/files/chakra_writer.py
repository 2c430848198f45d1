"""Writes execution traces as ASTRA-sim 2.x reads them: a workload's graph as protobuf bytes.

Only fields that ASTRA-sim reads are written (`artist.astra.files.chakra_schema`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from artist.astra.files.chakra_graph import nodes
from artist.astra.files.chakra_schema import (
    ATTRIBUTE_FIELDS,
    COLLECTIVE_CODES,
    LENGTH_DELIMITED,
    METADATA_FIELDS,
    NODE_FIELDS,
    SCHEMA_VERSION,
    VARINT,
    Node,
    NodeKind,
)
from artist.workload.graph import GraphNode, Kind
from artist.workload.layers import Workload


def encode_workload(workload: Workload, passes: int = 1) -> bytes:
    """The trace file of a workload. All NPUs run the same one.

    Raises:
        ValueError: a compute time is not in whole microseconds.
    """
    return _file(encode_node(node) for node in nodes(workload, passes))


def _file(of_nodes: Iterable[bytes]) -> bytes:
    schema = _attribute("schema", _text(ATTRIBUTE_FIELDS["text"], SCHEMA_VERSION))
    messages = [_nested(METADATA_FIELDS["attribute"], schema), *of_nodes]
    return b"".join(_varint(len(message)) + message for message in messages)


def encode_node(node: Node) -> bytes:
    """The message of one node. Fields of value zero are left out, as protobuf does."""
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
    return _varint(field << 3 | VARINT) + _varint(value)


def _text(field: int, value: str) -> bytes:
    return _nested(field, value.encode())


def _nested(field: int, payload: bytes) -> bytes:
    return _varint(field << 3 | LENGTH_DELIMITED) + _varint(len(payload)) + payload


def _varint(value: int) -> bytes:
    """Protobuf's varint: seven bits per byte, lowest first; the top bit says that more follow."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


_KINDS = {Kind.COMPUTE: 4, Kind.SEND: 5, Kind.RECEIVE: 6, Kind.COLLECTIVE: 7}


def encode_program(nodes: Sequence[GraphNode]) -> bytes:
    """The trace file of one GPU of a graph. The number of a node is its place."""
    return _file(_encode_graph_node(number, node) for number, node in enumerate(nodes))


def _encode_graph_node(number: int, node: GraphNode) -> bytes:
    parts = [
        _number(NODE_FIELDS["id"], number) if number else b"",
        _text(NODE_FIELDS["name"], f"{node.kind.name.lower()} {number}"),
        _number(NODE_FIELDS["kind"], _KINDS[node.kind]),
    ]
    if node.after:
        parts.append(_nested(NODE_FIELDS["parents"], b"".join(map(_varint, node.after))))
    if node.compute_us:
        parts.append(_number(NODE_FIELDS["duration_us"], node.compute_us))
    attributes = [
        _attribute(name, _number(ATTRIBUTE_FIELDS["int64"], value))
        for name, value in _numbers_of(node).items()
    ]
    if isinstance(node.over, int):
        attributes.append(_attribute("pg_name", _text(ATTRIBUTE_FIELDS["text"], str(node.over))))
    elif node.over is not None:
        mask = _nested(1, bytes(node.over))
        attributes.append(_attribute("involved_dim", _nested(ATTRIBUTE_FIELDS["bools"], mask)))
    parts += [_nested(NODE_FIELDS["attribute"], attribute) for attribute in attributes]
    return b"".join(parts)


def _numbers_of(node: GraphNode) -> dict[str, int]:
    match node.kind:
        case Kind.COLLECTIVE:
            return {"comm_type": COLLECTIVE_CODES[node.collective], "comm_size": node.size_bytes}
        case Kind.SEND:
            return {"comm_dst": node.peer, "comm_tag": node.tag, "comm_size": node.size_bytes}
        case Kind.RECEIVE:
            return {"comm_src": node.peer, "comm_tag": node.tag, "comm_size": node.size_bytes}
    return {}
