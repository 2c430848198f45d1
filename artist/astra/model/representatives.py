"""One NPU in place of all that do the same: whether a graph allows it, and what each one runs.

A graph allows it if the NPUs fall into classes so that

- NPUs of a class have the same nodes, and send as far along the network;
- the members of a collective are of one class, and all its messages cost the same;
- a message of every NPU of a class goes to another NPU of the same other class, at the same cost.

Then all NPUs of a class do the same at the same time, and `graph.play` plays one of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from artist.astra.messages.chunks_and_stages import Cut, Request
from artist.astra.messages.groups import COMMUNICATOR_ENDPOINT_NS, Communicator, GroupFamily
from artist.astra.messages.message_costs import Delays
from artist.astra.model.one_npu import one_npu
from artist.astra.model.prepared_graph import PreparedGraph
from artist.astra.model.tasks import Task, TaskList
from artist.astra.model.work import ChunkedNetwork
from artist.estimates.query import Topology
from artist.workload.graph import LaneProgram, NodeAction, play

Key = tuple[object, ...]


class DifferentNpusError(Exception):
    """NPUs of a class may do different things at the same time."""


def play_classes(prepared: PreparedGraph) -> list[int | None]:
    """When each NPU finished, in ns; None for one that never did.

    Raises:
        DifferentNpusError: NPUs of a class may differ, so all of them must be played.
        AmbiguousOrderError: the duration of a collective depends on the order of simultaneous
            events.
    """
    classes = _classes(prepared)
    class_of = {npu: number for number, npus in enumerate(classes) for npu in npus}
    times = _CollectiveTimes(prepared.work, class_of)
    programs = [_program(prepared, npus, class_of, times) for npus in classes]
    played = play(programs, COMMUNICATOR_ENDPOINT_NS)
    return [played.finish_ns[class_of[npu]] for npu in range(len(class_of))]


def _classes(prepared: PreparedGraph) -> list[list[int]]:
    """Classes of NPUs with the same tasks, whose peers are of the same classes too.

    The classes by tasks are split by the classes of their peers until nothing changes.
    """
    lists = prepared.programs
    keys: list[object] = [
        tuple(_alike(npu, task, prepared.work) for task in program.tasks)
        for npu, program in enumerate(lists)
    ]
    peers = [_peers(npu, program) for npu, program in enumerate(lists)]
    count = 0
    while True:
        numbers: dict[object, int] = {}
        class_of = [numbers.setdefault(key, len(numbers)) for key in keys]
        if len(numbers) == count:
            break
        count = len(numbers)
        keys = [(class_of[npu], tuple(class_of[x] for x in peers[npu])) for npu in range(len(keys))]
    classes: list[list[int]] = [[] for _ in numbers]
    for npu, number in enumerate(class_of):
        classes[number].append(npu)
    return classes


def _peers(npu: int, program: TaskList) -> list[int]:
    """The other end of each message."""
    messages = [task.message for task in program.tasks if task.message is not None]
    return [receiver if sender == npu else sender for _, sender, receiver, _ in messages]


def _alike(npu: int, task: Task, work: ChunkedNetwork) -> Key:
    """What a task has in common with the same task of other NPUs of its class."""
    key: Key = (task.kind, task.after, task.duration_ns)
    if task.message is not None:
        tag, sender, receiver, size = task.message
        return (*key, tag, receiver - sender, size)
    if task.request is not None:
        collective, size, over = task.request
        if isinstance(over, int):
            ranks = _ranks(work.cuts[task.request])
            steps = tuple(after - before for before, after in pairwise(ranks))
            return (*key, collective, size, steps)
        return (*key, collective, size, over)
    return key


def _ranks(cut: Cut) -> tuple[int, ...]:
    group = cut.stages[0].group
    return group.ranks if isinstance(group, Communicator) else ()


class _CollectiveTimes:
    """How long collectives of classes take."""

    def __init__(self, work: ChunkedNetwork, class_of: dict[int, int]) -> None:
        self._work = work
        self._class_of = class_of
        self._times: dict[Request, int] = {}
        self._checked: set[tuple[int, Request]] = set()

    def check(self, npu: int, request: Request) -> None:
        """Check that all members of an NPU's collective are of its class."""
        if (npu, request) not in self._checked:
            self._checked.add((npu, request))
            if any(self._class_of[x] != self._class_of[npu] for x in self._members(npu, request)):
                raise DifferentNpusError

    def _members(self, npu: int, request: Request) -> list[int]:
        found = [npu]
        for group in {stage.group for stage in self._work.cuts[request].stages}:
            found = [group.member(x, p) for x in found for p in range(group.nodes)]
        return found

    def duration_ns(self, request: Request) -> int:
        if request not in self._times:
            self._times[request] = self._ask(request)
        return self._times[request]

    def _ask(self, request: Request) -> int:
        work, cut = self._work, self._work.cuts[request]
        group = cut.stages[0].group
        if any(x.group.algorithm.family is GroupFamily.TREE for x in cut.stages):
            raise DifferentNpusError
        if isinstance(group, Communicator):
            self._check_alike(group)
            delays = Delays(COMMUNICATOR_ENDPOINT_NS, work.delays.memory_bytes_per_s)
            work = ChunkedNetwork(work.network, delays, work.cuts, work.queues, work.slots)
        return one_npu(work, request[0], cut).run()

    def _check_alike(self, group: Communicator) -> None:
        network = self._work.network
        routes = {network.route_between(x, y) for x in group.ranks for y in group.ranks if x != y}
        if len(routes) > 1 or network.dimensions[min(routes)[0]].topology is Topology.RING:
            raise DifferentNpusError


def _program(
    prepared: PreparedGraph, npus: Sequence[int], class_of: dict[int, int], times: _CollectiveTimes
) -> LaneProgram:
    """The nodes of the first NPU of a class, with their durations."""
    program = LaneProgram()
    own = class_of[npus[0]]
    lists: list[TaskList] = [prepared.programs[npu] for npu in npus]
    for number, task in enumerate(lists[0].tasks):
        channel: tuple[int, ...] = ()
        duration_ns = task.duration_ns
        if task.request is not None:
            for npu, one in zip(npus, lists, strict=True):
                request = one.tasks[number].request
                assert request is not None
                times.check(npu, request)
            duration_ns = times.duration_ns(task.request)
        elif task.message is not None:
            other = _other_class(number, lists, class_of, task.kind)
            pair = (own, other) if task.kind is NodeAction.SEND else (other, own)
            channel = (*pair, task.message[0], task.message[3])
        program.add(task.kind, duration_ns, task.after, channel)
    return program


def _other_class(
    number: int, lists: Sequence[TaskList], class_of: dict[int, int], kind: NodeAction
) -> int:
    """The class to which a class sends, or from which it receives."""
    peers = set()
    for program in lists:
        message = program.tasks[number].message
        assert message is not None
        peers.add(message[2] if kind is NodeAction.SEND else message[1])
    others = {class_of[peer] for peer in peers}
    size = sum(other in others for other in class_of.values())
    if len(others) > 1 or len(peers) < len(lists) or size != len(lists):
        raise DifferentNpusError
    return others.pop()
