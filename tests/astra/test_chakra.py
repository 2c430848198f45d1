"""Do Chakra traces hold the graph of an iteration? An independent decoder reads them back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rendered_queries import tiny, with_phase

from artist.astra.files.chakra_graph import nodes
from artist.astra.files.chakra_schema import Node, NodeKind
from artist.astra.files.chakra_writer import encode_node, encode_workload
from artist.workload.layers import Collective, Layer, Parallelism, Phase, Workload


def number(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        tag, at = number(data, at)
        if tag & 7 == 0:
            value, at = number(data, at)
            yield tag >> 3, value
        else:
            assert tag & 7 == 2
            size, at = number(data, at)
            yield tag >> 3, data[at : at + size]
            at += size


def messages(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        size, at = number(data, at)
        yield data[at : at + size]
        at += size


def decoded(message: bytes) -> Node:
    pairs = list(fields(message))
    one = dict(pairs)
    attributes = {}
    for key, value in pairs:
        if key == 10:
            assert isinstance(value, bytes)
            inner = dict(fields(value))
            attributes[inner[1]] = inner[9]
    packed, parents, at = one.get(5, b""), [], 0
    assert isinstance(packed, bytes)
    while at < len(packed):
        parent, at = number(packed, at)
        parents.append(parent)
    name = one[2]
    assert isinstance(name, bytes)
    codes = {0: Collective.ALL_REDUCE, 2: Collective.ALL_GATHER}
    codes |= {6: Collective.ALL_TO_ALL, 7: Collective.REDUCE_SCATTER}
    collective = codes[attributes[b"comm_type"]] if attributes else Collective.NONE
    return Node(
        one.get(1, 0),
        name.decode(),
        NodeKind(one[3]),
        tuple(parents),
        one.get(7, 0),
        collective,
        attributes.get(b"comm_size", 0),
    )


def test_metadata_names_the_schema() -> None:
    first = next(messages(encode_workload(tiny().workload)))
    ((field, attribute),) = fields(first)
    assert field == 2
    assert dict(fields(attribute)) == {1: b"schema", 29: b"1.0.2-chakra.0.0.4"}


def test_known_bytes_of_a_node() -> None:
    node = Node(300, "ab", NodeKind.COMPUTE, (1, 299), 5)
    assert encode_node(node).hex(" ") == "08 ac 02 12 02 61 62 18 04 2a 03 01 ab 02 38 05"


def test_every_node_reads_back() -> None:
    workload = tiny().workload
    _, *encoded = messages(encode_workload(workload, passes=2))
    assert [decoded(message) for message in encoded] == list(nodes(workload, passes=2))


@given(
    st.integers(0, 2**63 - 1),
    st.text(min_size=1, max_size=300),
    st.lists(st.integers(0, 2**40), max_size=200),
    st.integers(0, 2**60),
)
def test_any_node_reads_back(id_: int, name: str, parents: list[int], size: int) -> None:
    compute = Node(id_, name, NodeKind.COMPUTE, tuple(parents), size)
    sent = Node(id_, name, NodeKind.COLLECTIVE, tuple(parents), 0, Collective.ALL_TO_ALL, size)
    assert decoded(encode_node(compute)) == compute
    assert decoded(encode_node(sent)) == sent


def test_one_pass_of_data_parallel_training() -> None:
    graph = [(node.id, node.name, node.parents) for node in nodes(tiny().workload)]
    assert graph == [
        (0, "conv1/forward", ()),
        (1, "fc/forward", (0,)),
        (2, "fc/weight-grad", (1,)),
        (3, "fc/ALLGATHER", (2,)),
        (4, "fc/input-grad", (2,)),
        (5, "conv1/weight-grad", (4,)),
        (6, "conv1/ALLREDUCE", (5,)),
    ]


def test_a_layer_waits_for_its_gradient_of_the_pass_before() -> None:
    second = [node for node in nodes(tiny().workload, passes=2) if node.id >= 7][:2]
    assert [(node.name, node.parents) for node in second] == [
        ("conv1/forward", (6,)),
        ("fc/forward", (7, 3)),
    ]


def test_micro_workloads_are_collectives_alone() -> None:
    layer = Layer("a", Phase(1), Phase(1), Phase(1, Collective.REDUCE_SCATTER, 64))
    micro = Workload("micro", Parallelism.MICRO, (layer, layer))
    graph = list(nodes(micro, passes=2))
    assert [node.collective for node in graph] == [Collective.REDUCE_SCATTER] * 4
    assert not any(node.parents for node in graph)


def test_fractions_of_a_microsecond_are_refused() -> None:
    with pytest.raises(ValueError, match="conv1"):
        encode_workload(with_phase(tiny(), Phase(0.5)).workload)
