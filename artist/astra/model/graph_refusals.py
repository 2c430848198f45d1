"""What ASTRA-sim crashes or hangs on in a graph, refused with one sentence each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from math import prod
from typing import NoReturn

from artist.astra.messages.groups import Communicator, GroupFamily
from artist.astra.model.all_npus import AllNpus
from artist.errors import BackendSettingError
from artist.estimates.query import SystemSettings
from artist.workload.graph import GraphNode, JobGraph, NodeAction, place_in_cycle
from artist.workload.layers import Collective

Message = tuple[int, int, int, int]


def check_graph(graph: JobGraph, npus: Sequence[int], system: SystemSettings) -> None:
    """Check every node by itself, and that no node waits for itself.

    Raises:
        BackendSettingError: names GPU, node and reason.
    """
    total = prod(npus)
    if len(graph.programs) != total:
        raise BackendSettingError(
            f"graph {graph.name!r} has {len(graph.programs)} GPUs, but the placement has {total}; "
            "place it on as many GPUs"
        )
    known: set[tuple[GraphNode, ...]] = set()
    for gpu, nodes in enumerate(graph.programs):
        if nodes in known:
            continue
        known.add(nodes)
        for number, node in enumerate(nodes):
            if reason := _flaw(graph, gpu, node, npus, system):
                raise BackendSettingError(
                    f"graph {graph.name!r}, GPU {gpu}, node {number}: {reason}"
                )
        if (place := place_in_cycle(nodes)) is not None:
            raise BackendSettingError(
                f"graph {graph.name!r}, GPU {gpu}, node {place}: it waits for itself, directly or "
                "through others, and ASTRA-sim aborts on a cycle; correct its dependencies"
            )


def _flaw(
    graph: JobGraph, gpu: int, node: GraphNode, npus: Sequence[int], system: SystemSettings
) -> str:
    """Why ASTRA-sim could not run a node; empty if it can."""
    if node.kind is NodeAction.COLLECTIVE:
        return _flaw_of_collective(graph, gpu, node, npus, system)
    if node.kind in (NodeAction.COMPUTE, NodeAction.HOST):
        return ""
    word = "sends to" if node.kind is NodeAction.SEND else "receives from"
    if node.peer == gpu:
        return f"it {word} itself, on which ASTRA-sim aborts; remove the node"
    if not 0 <= node.peer < len(graph.programs):
        return f"it {word} GPU {node.peer}, but there are {len(graph.programs)} GPUs"
    if node.size_bytes < 1:
        return "its message has 0 bytes, on which ASTRA-sim aborts; give it at least 1"
    return ""


def _flaw_of_collective(
    graph: JobGraph, gpu: int, node: GraphNode, npus: Sequence[int], system: SystemSettings
) -> str:
    """Why ASTRA-sim could not run a collective; empty if it can."""
    over = node.over
    if isinstance(over, int):
        members = graph.communicators.get(over)
        if members is None:
            return f"its communicator {over} is in no list; list its GPUs in the group file"
        if gpu not in members:
            return f"its communicator {over} does not hold GPU {gpu}; correct the group file"
        if len(members) == 1:
            return "its communicator holds one GPU: in ASTRA-sim it never ends; remove the node"
        if len(set(members)) < len(members):
            return f"its communicator {over} lists a GPU twice"
    elif over is not None:
        if len(over) < len(npus):
            return f"its mask has {len(over)} dimensions, but the network has {len(npus)}"
        if not any(over[: len(npus)]):
            return "its mask holds no dimension: in ASTRA-sim it never ends; remove the node"
    splits = system.preferred_dataset_splits
    if node.collective is Collective.ALL_GATHER and node.size_bytes < splits:
        return (
            f"an all-gather of {node.size_bytes} bytes in {splits} parts "
            "(preferred_dataset_splits) never ends in ASTRA-sim; give it more bytes"
        )
    first = not node.after and system.endpoint_delay_ns == 0
    if first and not isinstance(over, int):
        return (
            "a collective begins at once and endpoint_delay_ns is 0: ASTRA-sim aborts on an event "
            "at time zero; set endpoint_delay_ns to 1 or more"
        )
    return ""


def check_communicator(name: str, listed: Communicator, collective: Collective) -> None:
    """Check that an algorithm can run in a communicator.

    Raises:
        BackendSettingError: ASTRA-sim crashes, exits or hangs.
    """
    family = listed.algorithm.family
    halving = family is GroupFamily.HALVING_DOUBLING
    if family is GroupFamily.TREE:
        raise BackendSettingError(
            f"{name} has {family.value} in a communicator: ASTRA-sim crashes; use ring or direct"
        )
    if halving and listed.nodes & (listed.nodes - 1):
        raise BackendSettingError(
            f"{name} has {family.value} in a communicator of {listed.nodes} GPUs: ASTRA-sim never "
            "ends unless that is a power of two; use ring or direct"
        )
    if halving and collective is Collective.ALL_TO_ALL:
        raise BackendSettingError(
            f"{name} has {family.value}: ASTRA-sim exits, having no such all-to-all; "
            "use ring or direct"
        )


def refuse_flat(name: str) -> NoReturn:
    """Refuse a `one*` algorithm over a mask.

    Raises:
        BackendSettingError: always.
    """
    raise BackendSettingError(
        f"{name} has an algorithm over all dimensions, but a collective spans some of them; use "
        "one algorithm per dimension"
    )


def refuse_deadlock(graph: JobGraph, played: AllNpus) -> NoReturn:
    """Say why GPUs wait forever.

    Raises:
        BackendSettingError: always.
    """
    gpu, number = next(_waiting(graph, played))
    node = graph.programs[gpu][number]
    stuck = sum(npu.finished_ns is None for npu in played.npus)
    where = f"graph {graph.name!r}: {stuck} of {len(played.npus)} GPUs wait forever; GPU {gpu}, "
    if node.kind is NodeAction.RECEIVE:
        where += f"node {number} receives {node.size_bytes} bytes with tag {node.tag} from GPU "
        where += f"{node.peer}, "
        reason = (
            "which sends no such message; give send and receive the same tag and bytes"
            if _message(gpu, node) not in _sends(graph)
            else "which never comes to send it; correct the order of sends and receives"
        )
    else:
        where += f"node {number} waits in a collective "
        reason = (
            "for members that issue it never, or in another order; let all members issue the same "
            "collectives in the same order"
        )
    raise BackendSettingError(where + reason, "deadlock")


def _waiting(graph: JobGraph, played: AllNpus) -> Iterator[tuple[int, int]]:
    """(GPU, node) that has begun and never ends; receives without any send come first."""
    begun = [(npu.number, number) for npu in played.npus for number in npu.begun]
    sends = _sends(graph)

    def rank(place: tuple[int, int]) -> tuple[bool, bool]:
        node = graph.programs[place[0]][place[1]]
        receives = node.kind is NodeAction.RECEIVE
        return not (receives and _message(place[0], node) not in sends), receives

    yield from sorted(begun, key=rank)


def _sends(graph: JobGraph) -> Counter[Message]:
    return Counter(
        (node.tag, gpu, node.peer, node.size_bytes)
        for gpu, nodes in enumerate(graph.programs)
        for node in nodes
        if node.kind is NodeAction.SEND
    )


def _message(gpu: int, node: GraphNode) -> Message:
    return node.tag, node.peer, gpu, node.size_bytes
