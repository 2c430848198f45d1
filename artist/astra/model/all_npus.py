"""All NPUs of a query, message by message, in ASTRA-sim's order of events.

This is exact even if NPUs differ (double binary trees, programs of their own, listed groups, stages
that end at the same instant), and it finds deadlocks. Its cost grows with the number of NPUs times
the number of messages.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from artist.astra.algorithms.dispatch import packet_plan
from artist.astra.algorithms.double_binary_tree import TreeAgent, tree
from artist.astra.algorithms.npu_in_stage import PacketAgent, PacketPlan
from artist.astra.messages.chunks_and_stages import Stage
from artist.astra.messages.event_order import Action, Agenda, EventClock, Mailbox
from artist.astra.messages.groups import COMMUNICATOR_ENDPOINT_NS, Communicator, GroupFamily
from artist.astra.messages.message_costs import Bundles
from artist.astra.model.one_npu import Interval
from artist.astra.model.queues import Lane, Leg, StreamMaker
from artist.astra.model.tasks import Message, TaskList
from artist.astra.model.work import ChunkedNetwork
from artist.workload.graph import NodeAction

LANES = {NodeAction.COMPUTE: 0, NodeAction.COLLECTIVE: 1, NodeAction.SEND: 1, NodeAction.HOST: 2}

StreamNumber = tuple[int, int]
"""(communicator, number). Collectives without a communicator are counted under 0."""


@dataclass(slots=True)
class Stream:
    """One chunk of task `task` on its way through its legs on one NPU."""

    number: StreamNumber
    task: int
    legs: tuple[Leg, ...]
    at: int = 0
    started_ns: int = 0

    @property
    def leg(self) -> Leg:
        """The leg that it is in, or waits for."""
        return self.legs[self.at]


class AllNpus:
    """All NPUs of a query; NPU i runs `programs[i]`."""

    def __init__(self, work: ChunkedNetwork, programs: Sequence[TaskList]) -> None:
        self.work = work
        self.agenda = Agenda()
        self.mailbox = Mailbox(self.agenda)
        self.log: list[Interval] | None = None
        self.npus = [Npu(self, number, program) for number, program in enumerate(programs)]
        self._plans: dict[Stage, tuple[PacketPlan, tuple[int, ...]]] = {}

    def run(self, *, log: bool = False) -> list[int | None]:
        """When each NPU finished, in ns; None for an NPU that never did (a deadlock).

        With `log` the intervals of the first NPU's stages are kept in `self.log`.
        """
        self.log = [] if log else None
        for npu in self.npus:
            npu.issue()
        self.agenda.run()
        return [npu.finished_ns for npu in self.npus]

    def plan(self, stage: Stage) -> tuple[PacketPlan, tuple[int, ...]]:
        """The packet plan of a stage and the time of each of its messages, made once.

        In a communicator the times differ between NPUs, so there are none.
        """
        if (planned := self._plans.get(stage)) is None:
            plan, group = packet_plan(stage), stage.group
            times_ns: tuple[int, ...] = ()
            if not isinstance(group, Communicator):
                time_ns = self.work.network.message_ns
                times_ns = tuple(time_ns(group, m.distance, m.size_bytes) for m in plan.messages)
            planned = self._plans[stage] = plan, times_ns
        return planned


class NpuQueue:
    """A queue of one NPU. A stream holds one of its slots for a whole leg."""

    __slots__ = ("running", "waiting")

    def __init__(self) -> None:
        self.running = 0
        self.waiting: deque[Stream] = deque()


class Npu:
    """One NPU: its tasks, its lanes, its queues, and the streams in them."""

    def __init__(self, shared: AllNpus, number: int, program: TaskList) -> None:
        self.number = number
        self.finished_ns: int | None = None
        self.done = [False] * len(program.tasks)
        self._shared = shared
        self._clock = EventClock(shared.agenda)
        delays = shared.work.delays
        self._bundles = Bundles(self._clock, delays)
        listed = replace(delays, endpoint_ns=COMMUNICATOR_ENDPOINT_NS)
        self._communicator_bundles = Bundles(self._clock, listed)
        self._queues: dict[Lane, NpuQueue] = {}
        self._maker = StreamMaker(shared.work.queues)
        self._tasks, self._followers = program.tasks, program.followers
        self._waits = [len(task.after) for task in program.tasks]
        self._ready = [number for number, waits in enumerate(self._waits) if not waits]
        self._busy = [False, False, False]
        self._left = len(program.tasks)
        self._streams_left: dict[int, int] = {}
        self._streams_made: dict[int, int] = {}

    @property
    def begun(self) -> list[int]:
        """Tasks that have begun or could begin, and have not ended."""
        return [i for i, waits in enumerate(self._waits) if not waits and not self.done[i]]

    def issue(self) -> None:
        """Begin the ready tasks whose lane is free, in ascending order."""
        kept: list[int] = []
        while self._ready:
            number = heapq.heappop(self._ready)
            kind = self._tasks[number].kind
            if kind is NodeAction.RECEIVE:
                self._receive(number)
                continue
            lane = LANES[kind]
            if self._busy[lane]:
                kept.append(number)
                continue
            self._busy[lane] = True
            self._begin(kind, number)
        self._ready = kept  # ascending, and so a heap

    def _begin(self, kind: NodeAction, number: int) -> None:
        """Begin a task. The end of a collective follows from its streams, any other is planned."""
        task, shared = self._tasks[number], self._shared
        if kind in (NodeAction.COMPUTE, NodeAction.HOST) or (
            kind is NodeAction.COLLECTIVE and not task.request
        ):
            self._clock.plan(task.duration_ns, partial(self._end, number))
        elif kind is NodeAction.COLLECTIVE:
            self._collect(number)
        else:
            # The sender is told first, then the receiver.
            shared.agenda.plan(task.duration_ns, partial(self._sent, number))

    def _sent(self, number: int) -> None:
        message = self._tasks[number].message
        assert message is not None
        self._end(number)
        self._shared.mailbox.arrive(_address(message))

    def _receive(self, number: int) -> None:
        message = self._tasks[number].message
        assert message is not None
        self._shared.mailbox.expect(_address(message), partial(self._end, number))

    def _end(self, number: int) -> None:
        """End a task: free its lane, and begin what waited for either."""
        kind = self._tasks[number].kind
        if kind is not NodeAction.RECEIVE:
            self._busy[LANES[kind]] = False
        self.done[number] = True
        self._left -= 1
        for follower in self._followers[number]:
            self._waits[follower] -= 1
            if not self._waits[follower]:
                heapq.heappush(self._ready, follower)
        self.issue()
        if not self._left:
            self.finished_ns = self._shared.agenda.now_ns

    def _collect(self, task: int) -> None:
        """Queue the streams of a collective, one per chunk."""
        request = self._tasks[task].request
        assert request is not None
        cut = self._shared.work.cuts[request]
        group = cut.stages[0].group
        counter = group.id if isinstance(group, Communicator) else 0
        streams = self._maker.streams(request[0], cut)
        self._streams_left[task] = len(streams)
        for legs in streams:
            made = self._streams_made.get(counter, 0)
            self._streams_made[counter] = made + 1
            stream = Stream((counter, made), task, legs)
            self._queue(stream).waiting.append(stream)
            self._fill(stream.leg.lane)

    def _queue(self, stream: Stream) -> NpuQueue:
        if (queue := self._queues.get(stream.leg.lane)) is None:
            queue = self._queues[stream.leg.lane] = NpuQueue()
        return queue

    def _fill(self, lane: Lane) -> None:
        queue = self._queues[lane]
        while queue.waiting and queue.running < self._shared.work.slots:
            queue.running += 1
            self._start(queue.waiting.popleft())

    def _leave(self, stream: Stream) -> None:
        """End a leg. As in ASTRA-sim, the stream queues again before its slot becomes free."""
        if (log := self._shared.log) is not None and self.number == 0:
            now_ns = self._shared.agenda.now_ns
            log.append(Interval(stream.leg.stage, stream.started_ns, now_ns))
        left = stream.leg.lane
        stream.at += 1
        if stream.at == len(stream.legs):
            self._streams_left[stream.task] -= 1
            if not self._streams_left[stream.task]:
                self._end(stream.task)
        else:
            self._queue(stream).waiting.append(stream)
        self._queues[left].running -= 1
        self._fill(left)
        if stream.at < len(stream.legs):
            self._fill(stream.leg.lane)

    def _start(self, stream: Stream) -> None:
        stream.started_ns = self._shared.agenda.now_ns
        if stream.leg.stage.group.algorithm.family is GroupFamily.TREE:
            self._start_tree(stream)
        else:
            self._start_packets(stream)

    def _start_packets(self, stream: Stream) -> None:
        """Start a leg in which NPUs exchange messages step by step."""
        shared, leg = self._shared, stream.leg
        group = leg.stage.group
        plan, times_ns = shared.plan(leg.stage)
        place = group.position(self.number)
        listed = isinstance(group, Communicator)
        pair_ns = shared.work.network.pair_ns

        def exchange(index: int) -> None:
            message = plan.messages[index]
            if plan.pairwise:
                there = back = place ^ message.distance
            else:
                there = (place + leg.direction * message.distance) % group.nodes
                back = (place - leg.direction * message.distance) % group.nodes
            size = message.size_bytes
            receiver, sender = group.member(self.number, there), group.member(self.number, back)
            time_ns = pair_ns(self.number, receiver, size) if listed else times_ns[index]
            shared.mailbox.send((stream.number, self.number, receiver, size), time_ns)
            shared.mailbox.expect((stream.number, sender, self.number, size), agent.receive)

        bundles = self._communicator_bundles if listed else self._bundles
        agent = PacketAgent(plan, bundles, exchange, lambda: self._leave(stream))
        agent.start()

    def _start_tree(self, stream: Stream) -> None:
        """Start a leg along a tree: messages go to parents and children."""
        shared, leg = self._shared, stream.leg
        group, size = leg.stage.group, leg.stage.input_bytes
        assert not isinstance(group, Communicator)  # refused
        place = group.position(self.number)

        def send(position: int) -> None:
            distance = (position - place) % group.nodes
            duration_ns = shared.work.network.message_ns(group, distance, size)
            receiver = group.member(self.number, position)
            shared.mailbox.send((stream.number, self.number, receiver, size), duration_ns)

        def expect(position: int, action: Action) -> None:
            sender = group.member(self.number, position)
            shared.mailbox.expect((stream.number, sender, self.number, size), action)

        node = tree(group.nodes, leg.variant)[place]
        done = partial(self._leave, stream)
        TreeAgent(node, size, self._bundles, (send, expect), done).start()


def _address(message: Message) -> tuple[tuple[str, int], int, int, int]:
    """The address of a message between two NPUs, distinct from those of streams."""
    tag, sender, receiver, size = message
    return ("p2p", tag), sender, receiver, size
