"""Execution traces read back: from the nodes of a file to the workload they stand for.

Only graphs that `artist.astra.files.chakra_writer` writes can be turned into a workload again
(ASTRA-sim's own converter of text workloads writes the same ones). Whatever else a
Chakra trace can hold is refused, never guessed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from artist.astra.files.chakra_writer import (
    ATTRIBUTE_FIELDS,
    COLLECTIVE_CODES,
    NODE_FIELDS,
    Node,
    NodeKind,
    nodes,
)
from artist.errors import BackendError
from artist.workload.layers import Collective, Layer, Parallelism, Phase, Workload

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_WIDTHS = {_FIXED64: 8, _FIXED32: 4}

_COLLECTIVES = {
    code: collective
    for collective, code in COLLECTIVE_CODES.items()
    if collective is not Collective.NONE
}
_FIELD_NAMES = {number: name for name, number in NODE_FIELDS.items()}

Fields = list[tuple[int, int | bytes]]


class MalformedTraceError(BackendError):
    """The bytes are not a Chakra trace."""


class InexpressibleTraceError(BackendError):
    """The trace is valid, but not an iteration that artist can answer for."""


def decode_nodes(data: bytes) -> list[Node]:
    """The nodes of a trace file, in its order.

    Raises:
        MalformedTraceError: truncated, or not protobuf.
        InexpressibleTraceError: a node has what artist does not know.
    """
    messages = list(_messages(data))
    if len(messages) < 2:
        raise MalformedTraceError("it holds no nodes; render the workload again")
    return [decode_node(message) for message in messages[1:]]


def decode_node(message: bytes) -> Node:
    """One node's message.

    Raises:
        MalformedTraceError, InexpressibleTraceError: as `decode_nodes`.
    """
    numbers: dict[str, int] = {}
    name = ""
    parents: list[int] = []
    attributes: dict[str, int] = {}
    for field, value in _fields(message):
        what = _FIELD_NAMES.get(field)
        if what == "name" and isinstance(value, bytes):
            name = _text(value)
        elif what == "parents":
            parents += _varints(value) if isinstance(value, bytes) else [value]
        elif what == "attribute" and isinstance(value, bytes):
            attributes.update([_attribute(value)])
        elif what in ("id", "kind", "duration_us") and isinstance(value, int):
            numbers[what] = value
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


def workload_of(found: Sequence[Node], name: str) -> tuple[Workload, int]:
    """The workload whose trace these nodes are, and its number of passes.

    Collectives alone are one pass of a MICRO workload, as its passes are all free at once.

    Raises:
        InexpressibleTraceError: the graph is another one.
    """
    if all(node.kind is NodeKind.COLLECTIVE for node in found):
        layers = tuple(
            Layer(str(i), Phase(), Phase(), _gradient(node)) for i, node in enumerate(found)
        )
        workload, passes = Workload(name, Parallelism.MICRO, layers), 1
    else:
        workload, passes = _data_parallel(found, name)
    _check_same(found, nodes(workload, passes))
    return workload, passes


def _data_parallel(found: Sequence[Node], name: str) -> tuple[Workload, int]:
    """A guess from the order of the nodes: the first collective belongs to the last layer."""
    kinds = [node.kind for node in found]
    count = kinds.index(NodeKind.COLLECTIVE) - 1 if NodeKind.COLLECTIVE in kinds else 0
    size = 4 * count - 1  # forward, weight gradient, collective and all but one input gradient
    if count < 1 or len(found) % size:
        raise InexpressibleTraceError(
            f"{len(found)} nodes are not whole passes over layers, each with a forward pass, its "
            "gradients and one collective; artist answers for data-parallel training alone"
        )
    layers = []
    for index in range(count):
        at = count + 3 * (count - 1 - index)
        weight_grad = _gradient(found[at + 1], found[at].duration_us)
        input_grad = Phase(float(found[at + 2].duration_us) if index else 0.0)
        forward = Phase(float(found[index].duration_us))
        layers.append(Layer(str(index), forward, input_grad, weight_grad))
    return Workload(name, Parallelism.DATA, tuple(layers)), len(found) // size


def _gradient(node: Node, compute_us: int = 0) -> Phase:
    return Phase(float(compute_us), node.collective, node.comm_bytes)


def _check_same(found: Sequence[Node], expected: Iterator[Node]) -> None:
    """Compare all but names, and of numbers the order alone."""
    places = {node.id: place for place, node in enumerate(found)}
    if len(places) < len(found):
        raise InexpressibleTraceError("two nodes have the same id")
    for got, want in zip_longest(found, expected):
        if got is None or want is None or _facts(got, places) != _facts(want):
            raise InexpressibleTraceError(
                f"node {got.name if got else ''!r} is not what data-parallel training has there: "
                "artist answers for traces as it renders them"
            )


def _facts(node: Node, places: dict[int, int] | None = None) -> tuple[object, ...]:
    parents = [places.get(x, -1) if places is not None else x for x in node.parents]
    collective = node.collective
    if node.kind is NodeKind.COLLECTIVE and collective is Collective.NONE:
        collective = Collective.ALL_REDUCE
    return (node.kind, sorted(parents), node.duration_us, collective, node.comm_bytes)


def _communication(name: str, kind: int, attributes: dict[str, int]) -> tuple[Collective, int]:
    """Collective and bytes; what kind of node may have them."""
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
    if code not in _COLLECTIVES:
        raise InexpressibleTraceError(
            f"node {name!r} has comm_type {code}, expected one of {sorted(_COLLECTIVES)}"
        )
    return _COLLECTIVES[code], attributes["comm_size"]


def _attribute(message: bytes) -> tuple[str, int]:
    found = dict(_fields(message))
    name = found.get(ATTRIBUTE_FIELDS["name"], b"")
    text = _text(name) if isinstance(name, bytes) else ""
    value = found.get(ATTRIBUTE_FIELDS["int64"])
    if not isinstance(value, int):
        raise InexpressibleTraceError(f"attribute {text!r} of a node is not an int64")
    return text, value


def _messages(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        message, at = _counted(data, at)
        yield message


def _fields(message: bytes) -> Fields:
    """Field numbers and values of a message: numbers, or bytes of anything longer."""
    found: Fields = []
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        value: int | bytes
        if tag & 7 == _VARINT:
            value, at = _varint(message, at)
        elif tag & 7 == _BYTES:
            value, at = _counted(message, at)
        elif tag & 7 in _WIDTHS:
            value, at = _slice(message, at, _WIDTHS[tag & 7])
        else:
            raise MalformedTraceError(f"byte {at} of a message is not protobuf")
        found.append((tag >> 3, value))
    return found


def _varints(data: bytes) -> Iterator[int]:
    at = 0
    while at < len(data):
        value, at = _varint(data, at)
        yield value


def _counted(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = _varint(data, at)
    return _slice(data, at, size)


def _slice(data: bytes, at: int, size: int) -> tuple[bytes, int]:
    if at + size > len(data):
        raise MalformedTraceError("it is truncated")
    return data[at : at + size], at + size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            raise MalformedTraceError("it is truncated")
        value |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return value, at
    raise MalformedTraceError(f"byte {at} ends no number")


def _text(data: bytes) -> str:
    return data.decode("utf-8", errors="replace")
