"""Divided jobs whose groups are priced as by ASTRA-sim: as lists of GPUs, each one flat ring.

By default a group is cut out of the placement's dimensions (`rank_groups.py`, `layer_wise.py`).
ASTRA-sim itself cuts whole dimensions only. To it, any other group is a communicator: a list of
GPUs that it runs as one ring, in the order of the list. It charges each message to the innermost
dimension in which the two GPUs differ. So a ring that leaves a machine may pay nothing for that.
`groups: flat` asks for these prices, for comparison.

The iteration is a graph of all GPUs, and the backend answers about it as a whole. Members of a
communicator may finish at different times, so one GPU cannot stand for others here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

from artist.errors import DivisionError
from artist.estimates.divided.layer_wise import contributed_bytes, nodes_of
from artist.estimates.divided.rank_groups import Ranks
from artist.estimates.group_members import extent
from artist.estimates.query import LatencyBackend, LatencyQuery
from artist.workload.division.staged import Axis
from artist.workload.graph import GraphNode, JobGraph, NodeAction
from artist.workload.layers import Collective, Parallelism, Scope, Workload
from artist.workload.stage_programs import StagePrograms, stage_programs
from artist.workload.stage_steps import NS_PER_US, Request

Group = tuple[int, ...]


def flat_ns(backend: LatencyBackend, query: LatencyQuery, graph: JobGraph) -> int:
    """Nanoseconds until the last GPU of a graph ends.

    Raises:
        BackendError: the backend answers no graphs.
    """
    workload = Workload(query.workload.name, Parallelism.GRAPH, (), graph=graph)
    return backend.estimate(replace(query, workload=workload, passes=1)).finish_ns


def layer_graph(query: LatencyQuery) -> JobGraph:
    """The iteration of a workload whose GPUs all run the same nodes (`iteration_graph.py`).

    Raises:
        DivisionError: the job's GPUs do not divide into its groups.
    """
    gpus = query.gpus
    degrees = query.workload.degrees

    def group(scope: Scope, gpu: int) -> Group:
        stride, size = extent(gpus, degrees, scope)
        if gpus % (stride * size):
            raise DivisionError(
                f"{gpus} GPUs do not divide into {scope} groups of {size}; choose other degrees"
            )
        first = gpu - gpu // stride % size * stride
        return tuple(range(first, first + stride * size, stride))

    listed = _Communicators(query, group)
    program = [
        _Node(NodeAction.COMPUTE, x.after, int(x.compute_us))
        if x.collective is None
        else _Node(NodeAction.COLLECTIVE, x.after, request=(x.collective, x.comm_bytes, x.scope))
        for x in nodes_of(query)
    ]
    # A collective of one GPU takes no time. `node` makes it an empty computation, which takes 1 ns.
    programs = tuple(tuple(listed.node(node, gpu) for node in program) for gpu in range(gpus))
    return JobGraph(query.workload.name, programs, listed.groups)


def stage_graph(query: LatencyQuery, workload: Workload, ranks: Ranks) -> JobGraph:
    """The iteration of a staged workload, with ranks on the GPUs in the order of `ranks`."""
    placed = _PlacedRanks(ranks, query.gpus)
    listed = _Communicators(query, placed.group)
    made = stage_programs(workload, _NoTime(ranks), fine=True)
    stages = [list(_stage_nodes(made, stage)) for stage in range(len(made.programs))]
    programs = tuple(
        tuple(
            listed.node(node, gpu, placed.peer(gpu, node.to) if node.to is not None else 0)
            for node in stages[placed.stage(gpu)]
        )
        for gpu in range(placed.gpus)
    )
    return JobGraph(workload.name, programs, listed.groups)


class _Node(NamedTuple):
    """A node that several GPUs run. `to` is the other stage of a message."""

    kind: NodeAction
    after: tuple[int, ...]
    compute_us: int = 0
    request: Request | None = None
    to: int | None = None
    size_bytes: int = 0
    tag: int = 0


def _stage_nodes(made: StagePrograms, stage: int) -> Iterator[_Node]:
    program = made.programs[stage]
    requests = {x.node: x.what[0] for x in made.sent if x.stage == stage and x.what}
    rows = zip(program.kinds, program.after, program.durations_ns, program.channels, strict=True)
    for number, (kind, after, duration_ns, channel) in enumerate(rows):
        if kind in (NodeAction.SEND, NodeAction.RECEIVE):
            sender, receiver, tag, size = channel
            other = receiver if kind is NodeAction.SEND else sender
            yield _Node(kind, after, to=other, size_bytes=size, tag=tag)
        elif kind is NodeAction.COLLECTIVE:
            yield _Node(kind, after, request=requests[number])
        else:
            yield _Node(kind, after, round(duration_ns / NS_PER_US))


class _Communicators:
    """Makes the nodes of GPUs, and numbers their groups from 1 in the order of first use."""

    def __init__(self, query: LatencyQuery, group: Callable[[Scope, int], Group]) -> None:
        self.groups: dict[int, Group] = {}
        self._query, self._group = query, group
        self._numbers: dict[Group, int] = {}
        self._group_of: dict[tuple[Scope, int], Group] = {}

    def node(self, node: _Node, gpu: int, peer: int = 0) -> GraphNode:
        if node.request is None:
            return GraphNode(
                node.kind, node.after, node.compute_us, Collective.NONE, node.size_bytes, None,
                peer, node.tag,
            )  # fmt: skip
        collective, size, scope = node.request
        group = self._group_of.get((scope, gpu))
        if group is None:
            group = self._group_of[scope, gpu] = self._group(scope, gpu)
        if len(group) == 1:
            return GraphNode(NodeAction.COMPUTE, node.after)
        if collective is Collective.ALL_GATHER:
            size = contributed_bytes(size, len(group), self._query.system)
        return GraphNode(node.kind, node.after, 0, collective, size, self._number(group))

    def _number(self, group: Group) -> int:
        number = self._numbers.setdefault(group, len(self._numbers) + 1)
        self.groups[number] = group
        return number


class _PlacedRanks:
    """The groups of GPUs whose ranks are numbered axis by axis, innermost first."""

    def __init__(self, ranks: Ranks, gpus: int) -> None:
        self.gpus = gpus
        self._expert = ranks.axes.expert
        self._strides: dict[Axis, tuple[int, int]] = {}
        stride = 1
        sizes = ranks.sizes
        for axis in ranks.order:
            self._strides[axis] = (stride, sizes[axis])
            stride *= sizes[axis]

    def stage(self, gpu: int) -> int:
        """The stage of a GPU."""
        return self._place(gpu, Axis.PIPELINE)

    def peer(self, gpu: int, stage: int) -> int:
        """The GPU in another stage with the same place on all other axes."""
        return gpu + (stage - self.stage(gpu)) * self._strides[Axis.PIPELINE][0]

    def group(self, scope: Scope, gpu: int) -> Group:
        """The members of a GPU's group, in the order of their ranks."""
        match scope:
            case Scope.TENSOR:
                return self._along((Axis.TENSOR,), gpu)
            case Scope.CONTEXT:
                return self._along((Axis.CONTEXT,), gpu)
            case Scope.DATA:
                return self._along((Axis.DATA, Axis.CONTEXT), gpu)
        stage = self._along((Axis.TENSOR, Axis.CONTEXT, Axis.DATA), gpu)
        place = stage.index(gpu)
        if scope is Scope.EXPERT:
            first = place - place % self._expert
            return stage[first : first + self._expert]
        return stage[place % self._expert :: self._expert]

    def _along(self, axes: tuple[Axis, ...], gpu: int) -> Group:
        members = [gpu - sum(self._place(gpu, axis) * self._strides[axis][0] for axis in axes)]
        for axis in axes:
            stride, size = self._strides[axis]
            members = [member + step * stride for step in range(size) for member in members]
        return tuple(sorted(members))

    def _place(self, gpu: int, axis: Axis) -> int:
        stride, size = self._strides[axis]
        return gpu // stride % size


class _NoTime:
    """Costs where durations do not matter, except that collectives of one GPU have no node."""

    def __init__(self, ranks: Ranks) -> None:
        self._ranks = ranks

    def collective_ns(self, request: Request) -> int:
        """1, or 0 for a group of one GPU."""
        return int(bool(self._ranks.group(request[2])))

    def message_ns(self, sender: int, receiver: int, size_bytes: int) -> int:
        """1: any duration would do."""
        return 1
