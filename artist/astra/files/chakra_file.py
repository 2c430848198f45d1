"""Writes Chakra execution traces as ASTRA-sim 2.x reads them, and states their schema.

A trace file is a metadata message and then one message per node, each after its length, in
protobuf's wire format. Only what ASTRA-sim reads is here. The numbers of the fields are those of
Chakra's `et_def.proto`.

    chakra_graph     workload <-> nodes
    chakra_file      nodes -> bytes
    chakra_reader    bytes -> nodes
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from artist.astra.files.chakra_graph import nodes
from artist.errors import BackendError
from artist.workload.layers import Collective, Workload

SCHEMA_VERSION = "1.0.2-chakra.0.0.4"

METADATA_FIELDS = {"attribute": 2}
NODE_FIELDS = {"id": 1, "name": 2, "kind": 3, "parents": 5, "duration_us": 7, "attribute": 10}
ATTRIBUTE_FIELDS = {"name": 1, "int64": 9, "text": 29}

COLLECTIVE_CODES = {
    # A layer without a collective still gets one of no bytes, as from ASTRA-sim's own converter.
    Collective.NONE: 0,
    Collective.ALL_REDUCE: 0,
    Collective.ALL_GATHER: 2,
    Collective.ALL_TO_ALL: 6,
    Collective.REDUCE_SCATTER: 7,
}

# Protobuf's wire types: the low three bits of a field's tag.
VARINT, FIXED64, LENGTH_DELIMITED, FIXED32 = 0, 1, 2, 5


class NodeKind(IntEnum):
    """Kinds of nodes, by Chakra's numbers."""

    COMPUTE = 4
    COLLECTIVE = 7


@dataclass(frozen=True, slots=True)
class Node:
    """One operation of an NPU. Only a collective has `collective` and `comm_bytes`."""

    id: int
    name: str
    kind: NodeKind
    parents: tuple[int, ...] = ()
    duration_us: int = 0
    collective: Collective = Collective.NONE
    comm_bytes: int = 0


class MalformedTraceError(BackendError):
    """The bytes are not a Chakra trace."""


class InexpressibleTraceError(BackendError):
    """The trace is valid, but it is not an iteration that artist can answer for."""


def encode_workload(workload: Workload, passes: int = 1) -> bytes:
    """The trace file of a workload. All NPUs run the same one.

    Raises:
        ValueError: a compute time is not in whole microseconds.
    """
    schema = _attribute("schema", _text(ATTRIBUTE_FIELDS["text"], SCHEMA_VERSION))
    messages = [_nested(METADATA_FIELDS["attribute"], schema)]
    messages += [encode_node(node) for node in nodes(workload, passes)]
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
