"""Reads execution traces: from the bytes of a Chakra file to its nodes.

Chakra's schema allows more in a node than artist writes. A node with any of that is refused;
nothing is ignored. `artist.astra.files.chakra_graph` tells whether the nodes are the graph of a
workload.
"""

from __future__ import annotations

from collections.abc import Iterator

from artist.astra.files.chakra_schema import (
    ATTRIBUTE_FIELDS,
    COLLECTIVES,
    FIXED32,
    FIXED64,
    LENGTH_DELIMITED,
    NODE_FIELDS,
    VARINT,
    InexpressibleTraceError,
    MalformedTraceError,
    Node,
    NodeKind,
)
from artist.workload.layers import Collective

_WIDTHS = {FIXED64: 8, FIXED32: 4}
_FIELD_NAMES = {number: name for name, number in NODE_FIELDS.items()}

Fields = list[tuple[int, int | bytes]]


def decode_nodes(data: bytes) -> list[Node]:
    """The nodes of a trace file, in the order of the file.

    Raises:
        MalformedTraceError: the bytes are truncated or not protobuf.
        InexpressibleTraceError: a node has a field, attribute or kind that artist does not know.
    """
    found = list(messages(data))
    if len(found) < 2:
        raise MalformedTraceError("it holds no nodes; render the workload again")
    return [decode_node(message) for message in found[1:]]


def decode_node(message: bytes) -> Node:
    """The node of one message.

    Raises:
        MalformedTraceError, InexpressibleTraceError: as in `decode_nodes`.
    """
    numbers: dict[str, int] = {}
    name = ""
    parents: list[int] = []
    attributes: dict[str, int] = {}
    for field, value in fields(message):
        field_name = _FIELD_NAMES.get(field)
        if field_name == "name" and isinstance(value, bytes):
            name = text_of(value)
        elif field_name == "parents":
            parents += varints(value) if isinstance(value, bytes) else [value]
        elif field_name == "attribute" and isinstance(value, bytes):
            attributes.update([_attribute(value)])
        elif field_name in ("id", "kind", "duration_us") and isinstance(value, int):
            numbers[field_name] = value
        else:
            raise InexpressibleTraceError(f"node {name!r} has field {field}: unknown to artist")
    collective, size = _communication(name, numbers.get("kind", 0), attributes)
    return Node(
        numbers.get("id", 0),
        name,
        NodeKind(numbers["kind"]),
        tuple(parents),
        numbers.get("duration_us", 0),
        collective,
        size,
    )


def _communication(name: str, kind: int, attributes: dict[str, int]) -> tuple[Collective, int]:
    """The collective of a node and its bytes; NONE and 0 for a computation."""
    if kind not in tuple(NodeKind):
        raise InexpressibleTraceError(
            f"node {name!r} is of kind {kind}, expected a computation (4) or collective (7)"
        )
    expected = {"comm_type", "comm_size"} if kind == NodeKind.COLLECTIVE else set()
    if set(attributes) != expected:
        raise InexpressibleTraceError(
            f"node {name!r} has attributes {sorted(attributes)}, expected {sorted(expected)}"
        )
    if not expected:
        return Collective.NONE, 0
    code = attributes["comm_type"]
    if code not in COLLECTIVES:
        raise InexpressibleTraceError(
            f"node {name!r} has comm_type {code}, expected one of {sorted(COLLECTIVES)}"
        )
    return COLLECTIVES[code], attributes["comm_size"]


def _attribute(message: bytes) -> tuple[str, int]:
    found = dict(fields(message))
    name = found.get(ATTRIBUTE_FIELDS["name"], b"")
    text = text_of(name) if isinstance(name, bytes) else ""
    value = found.get(ATTRIBUTE_FIELDS["int64"])
    if not isinstance(value, int):
        raise InexpressibleTraceError(f"attribute {text!r} of a node is not an int64")
    return text, value


def messages(data: bytes) -> Iterator[bytes]:
    """The messages of a file, each of which follows its length."""
    at = 0
    while at < len(data):
        message, at = _with_length(data, at)
        yield message


def fields(message: bytes) -> Fields:
    """(field number, value) of each field of a message.

    The value of a varint is a number, that of any other field its bytes.
    """
    found: Fields = []
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        value: int | bytes
        if tag & 7 == VARINT:
            value, at = _varint(message, at)
        elif tag & 7 == LENGTH_DELIMITED:
            value, at = _with_length(message, at)
        elif tag & 7 in _WIDTHS:
            value, at = _slice(message, at, _WIDTHS[tag & 7])
        else:
            raise MalformedTraceError(f"byte {at} of a message is not protobuf")
        found.append((tag >> 3, value))
    return found


def varints(data: bytes) -> Iterator[int]:
    """The numbers of a packed list."""
    at = 0
    while at < len(data):
        value, at = _varint(data, at)
        yield value


def _with_length(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = _varint(data, at)
    return _slice(data, at, size)


def _slice(data: bytes, at: int, size: int) -> tuple[bytes, int]:
    if at + size > len(data):
        raise MalformedTraceError("it is truncated")
    return data[at : at + size], at + size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):  # at most 10 bytes, for 64 bits
        if at >= len(data):
            raise MalformedTraceError("it is truncated")
        value |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return value, at
    raise MalformedTraceError(f"byte {at} ends no number")


def text_of(data: bytes) -> str:
    """A text in UTF-8; invalid bytes are replaced."""
    return data.decode("utf-8", errors="replace")
