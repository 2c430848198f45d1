"""Writes execution traces as ASTRA-sim 2.x reads them: a workload's graph as protobuf bytes.

Only fields that ASTRA-sim reads are written (`artist.astra.files.chakra_schema`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

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
from artist.workload.layers import Workload


def encode_workload(workload: Workload, passes: int = 1) -> bytes:
    """The trace file of a workload. All NPUs run the same one.

    Raises:
        ValueError: a compute time is not in whole microseconds.
    """
    return trace_file(encode_node(node) for node in nodes(workload, passes))


def encode_node(node: Node) -> bytes:
    """The message of one node."""
    if node.kind is NodeKind.COMPUTE:
        return message(node.id, node.name, node.kind, node.parents, node.duration_us)
    values = {"comm_type": COLLECTIVE_CODES[node.collective], "comm_size": node.comm_bytes}
    return message(node.id, node.name, node.kind, node.parents, attributes=numbers(values))


def trace_file(of_nodes: Iterable[bytes]) -> bytes:
    """The file of messages of nodes."""
    schema = attribute("schema", _text(ATTRIBUTE_FIELDS["text"], SCHEMA_VERSION))
    messages = [nested(METADATA_FIELDS["attribute"], schema), *of_nodes]
    return b"".join(_varint(len(one)) + one for one in messages)


def message(
    number: int,
    name: str,
    kind: int,
    parents: Sequence[int],
    duration_us: int = 0,
    attributes: Iterable[bytes] = (),
) -> bytes:
    """The message of a node. Fields of value zero are left out, as protobuf does."""
    parts = [_number(NODE_FIELDS["id"], number)] if number else []
    parts += [_text(NODE_FIELDS["name"], name), _number(NODE_FIELDS["kind"], kind)]
    if parents:
        parts.append(nested(NODE_FIELDS["parents"], b"".join(map(_varint, parents))))
    if duration_us:
        parts.append(_number(NODE_FIELDS["duration_us"], duration_us))
    return b"".join([*parts, *(nested(NODE_FIELDS["attribute"], one) for one in attributes)])


def numbers(values: Mapping[str, int]) -> Iterator[bytes]:
    """The attributes of numbers."""
    for name, value in values.items():
        yield attribute(name, _number(ATTRIBUTE_FIELDS["int64"], value))


def attribute(name: str, value: bytes) -> bytes:
    """An attribute of a node or file."""
    return _text(ATTRIBUTE_FIELDS["name"], name) + value


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3 | VARINT) + _varint(value)


def _text(field: int, value: str) -> bytes:
    return nested(field, value.encode())


def nested(field: int, payload: bytes) -> bytes:
    """A field of bytes, such as a message or a text."""
    return _varint(field << 3 | LENGTH_DELIMITED) + _varint(len(payload)) + payload


def _varint(value: int) -> bytes:
    """Protobuf's varint: seven bits per byte, lowest first; the top bit says that more follow."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
