"""Execution traces in Chakra's schema: the nodes of a graph, and the numbers of their fields.

A trace file is a metadata message and then one message per node, each after its length, in
protobuf's wire format. Only what ASTRA-sim reads is here. The numbers are those of Chakra's
`et_def.proto`.

    chakra_graph     workload <-> nodes
    chakra_writer    nodes -> bytes
    chakra_reader    bytes -> nodes
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from artist.errors import BackendError
from artist.workload.layers import Collective

SCHEMA_VERSION = "1.0.2-chakra.0.0.4"

METADATA_FIELDS = {"attribute": 2}
NODE_FIELDS = {"id": 1, "name": 2, "kind": 3, "parents": 5, "duration_us": 7, "attribute": 10}
ATTRIBUTE_FIELDS = {"name": 1, "int64": 9, "bools": 28, "text": 29}

COLLECTIVE_CODES = {
    # A layer without a collective still gets one of no bytes, as from ASTRA-sim's own converter.
    Collective.NONE: 0,
    Collective.ALL_REDUCE: 0,
    Collective.ALL_GATHER: 2,
    Collective.ALL_TO_ALL: 6,
    Collective.REDUCE_SCATTER: 7,
}
COLLECTIVES = {code: x for x, code in COLLECTIVE_CODES.items() if x is not Collective.NONE}
"""The collectives by code."""

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
