"""A graph query, checked and taken apart: what each NPU runs, and how collectives are cut.

What ASTRA-sim crashes or hangs on is refused: here, in `graph_refusals.py`, or, for a deadlock,
when the NPUs are played.
"""

from __future__ import annotations

from dataclasses import dataclass

from artist.astra.messages.chunks_and_stages import Cut, Request
from artist.astra.messages.groups import AnyGroup, communicator, groups
from artist.astra.messages.message_costs import MessageNetwork
from artist.astra.model import graph_refusals, refusals
from artist.astra.model.prepared_query import algorithm_lists, cut_of, shared_work
from artist.astra.model.tasks import Task, TaskList
from artist.astra.model.work import ChunkedNetwork
from artist.estimates.query import Dimension, SystemSettings
from artist.workload.graph import GraphNode, JobGraph, NodeAction, Over, duration_ns
from artist.workload.layers import Collective


@dataclass(frozen=True, slots=True)
class PreparedGraph:
    """A checked graph: what all NPUs share, and what each runs."""

    work: ChunkedNetwork
    programs: tuple[TaskList, ...]


def prepare_graph(
    graph: JobGraph, dimensions: tuple[Dimension, ...], system: SystemSettings
) -> PreparedGraph:
    """Check a graph on a network and take it apart.

    Raises:
        BackendSettingError: ASTRA-sim would crash, hang or answer nonsense.
    """
    refusals.check_network(dimensions, system)
    network = MessageNetwork(dimensions)
    graph_refusals.check_graph(graph, network.npus, system)
    preparing = _Preparing(graph, network, system)
    programs = tuple(preparing.program(npu) for npu in range(network.total_npus))
    return PreparedGraph(shared_work(network, system, preparing.cuts), programs)


class _Preparing:
    """Makes the tasks of all NPUs. Cuts are made once for each different collective."""

    def __init__(self, graph: JobGraph, network: MessageNetwork, system: SystemSettings) -> None:
        self.cuts: dict[Request, Cut] = {}
        self._graph, self._network, self._system = graph, network, system
        self._lists = algorithm_lists(system, network)

    def program(self, npu: int) -> TaskList:
        return TaskList(tuple(self._task(npu, node) for node in self._graph.programs[npu]))

    def _task(self, npu: int, node: GraphNode) -> Task:
        """What an NPU does at a node."""
        match node.kind:
            case NodeAction.COMPUTE | NodeAction.HOST:
                return Task(node.kind, node.after, duration_ns(node.compute_us))
            case NodeAction.COLLECTIVE if node.collective is Collective.NONE:
                return Task(node.kind, node.after, duration_ns(node.compute_us))
            case NodeAction.COLLECTIVE:
                return Task(node.kind, node.after, request=self._request(node))
            case NodeAction.SEND:
                message = (node.tag, npu, node.peer, node.size_bytes)
                time_ns = self._network.pair_ns(npu, node.peer, node.size_bytes)
                return Task(node.kind, node.after, time_ns, message=message)
            case _:
                message = (node.tag, node.peer, npu, node.size_bytes)
                return Task(node.kind, node.after, message=message)

    def _request(self, node: GraphNode) -> Request:
        """The request of a collective, which is cut into chunks when it first occurs."""
        over = node.over
        if isinstance(over, int) and len(self._graph.communicators[over]) == len(
            self._graph.programs
        ):
            over = None  # as in ASTRA-sim, whatever the order of the list
        request = (node.collective, node.size_bytes, over)
        if request not in self.cuts:
            members = self._members(node.collective, over)
            self.cuts[request] = cut_of(request, members, self._system, self._network.total_npus)
        return request

    def _members(self, collective: Collective, over: Over) -> tuple[AnyGroup, ...]:
        """The groups that take part: a listed communicator, or dimensions of the network."""
        name, algorithms = self._lists[collective]
        dimensions = len(self._network.npus)
        if isinstance(over, int):
            ranks = self._graph.communicators[over]
            listed = communicator(over, ranks, algorithms)
            graph_refusals.check_communicator(name, listed, collective)
            return (listed,)
        whole = groups(self._network.npus, algorithms)
        if over is not None:
            if any(group.algorithm.flat for group in whole):
                graph_refusals.refuse_flat(name)
            whole = tuple(group for group in whole if over[group.index])
        refusals.check_groups(name, whole, collective, dimensions)
        return whole
