"""Execution traces of the GPUs of a graph, as other programs write them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from artist.astra.files.chakra_schema import ATTRIBUTE_FIELDS, COLLECTIVE_CODES
from artist.astra.files.chakra_writer import attribute, message, nested, numbers, trace_file
from artist.workload.graph import GraphNode, NodeAction

_KINDS = {
    NodeAction.COMPUTE: 4,
    NodeAction.SEND: 5,
    NodeAction.RECEIVE: 6,
    NodeAction.COLLECTIVE: 7,
}


def encode_program(nodes: Sequence[GraphNode]) -> bytes:
    """The trace file of one GPU. The number of a node is its place."""
    return trace_file(
        message(
            number, f"{node.kind.name.lower()} {number}", _KINDS[node.kind], node.after,
            node.compute_us, _attributes(node),
        )
        for number, node in enumerate(nodes)
    )  # fmt: skip


def _attributes(node: GraphNode) -> Iterator[bytes]:
    yield from numbers(_numbers_of(node))
    if isinstance(node.over, int):
        yield attribute("pg_name", nested(ATTRIBUTE_FIELDS["text"], str(node.over).encode()))
    elif node.over is not None:
        mask = nested(1, bytes(node.over))
        yield attribute("involved_dim", nested(ATTRIBUTE_FIELDS["bools"], mask))


def _numbers_of(node: GraphNode) -> dict[str, int]:
    match node.kind:
        case NodeAction.COLLECTIVE:
            return {"comm_type": COLLECTIVE_CODES[node.collective], "comm_size": node.size_bytes}
        case NodeAction.SEND:
            return {"comm_dst": node.peer, "comm_tag": node.tag, "comm_size": node.size_bytes}
        case NodeAction.RECEIVE:
            return {"comm_src": node.peer, "comm_tag": node.tag, "comm_size": node.size_bytes}
    return {}
