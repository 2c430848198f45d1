"""All NPUs of a query, message by message, in ASTRA-sim's order of events.

This is exact also where NPUs differ (double binary trees, stages that end at the same instant),
and it shows deadlocks. Its cost grows with the number of NPUs times the number of messages.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import partial

from artist.astra.algorithms.dispatch import packet_plan
from artist.astra.algorithms.double_binary_tree import TreeAgent, tree
from artist.astra.algorithms.npu_in_stage import PacketAgent, PacketPlan
from artist.astra.messages.chunks_and_stages import Stage
from artist.astra.messages.event_order import Action, Agenda, EventClock, Mailbox
from artist.astra.messages.groups import GroupFamily
from artist.astra.messages.message_costs import Bundles, Delays, MessageNetwork
from artist.astra.model.one_npu import Interval
from artist.astra.model.queues import Lane, Leg, StreamMaker
from artist.astra.model.training_loop import Program


@dataclass(slots=True)
class Stream:
    """One chunk on its way through its legs on one NPU."""

    number: int
    legs: tuple[Leg, ...]
    at: int = 0
    started_ns: int = 0

    @property
    def leg(self) -> Leg:
        """The leg that it is in, or waits for."""
        return self.legs[self.at]


class AllNpus:
    """All NPUs of a query, and what they share: the network, the agenda and the mailbox.

    `work` is the program of all passes, `slots` the number of streams that run in a queue.
    """

    def __init__(
        self, network: MessageNetwork, delays: Delays, slots: int, maker: StreamMaker, work: Program
    ) -> None:
        self.network = network
        self.delays = delays
        self.slots = slots
        self.maker = maker
        self.work = work
        self.agenda = Agenda()
        self.mailbox = Mailbox(self.agenda)
        self.log: list[Interval] | None = None
        self._plans: dict[Stage, tuple[PacketPlan, tuple[int, ...]]] = {}

    def run(self, *, log: bool = False) -> list[int | None]:
        """When each NPU finished, in ns; None for an NPU that never did (a deadlock).

        With `log` the intervals of the first NPU's stages are kept in `self.log`.
        """
        self.log = [] if log else None
        npus = [Npu(self, number) for number in range(self.network.total_npus)]
        for npu in npus:
            npu.fire()
        self.agenda.run()
        return [npu.finished_ns for npu in npus]

    def plan(self, stage: Stage) -> tuple[PacketPlan, tuple[int, ...]]:
        """The packet plan of a stage and the time of each of its messages, made once."""
        if (planned := self._plans.get(stage)) is None:
            plan, time_ns = packet_plan(stage), self.network.message_ns
            times_ns = [time_ns(stage.group, m.distance, m.size_bytes) for m in plan.messages]
            planned = self._plans[stage] = plan, tuple(times_ns)
        return planned


class NpuQueue:
    """A queue of one NPU. A stream holds one of its slots for a whole leg."""

    __slots__ = ("running", "waiting")

    def __init__(self) -> None:
        self.running = 0
        self.waiting: deque[Stream] = deque()


class Npu:
    """One NPU: the program that it runs, its queues, and the streams in them.

    Of its collectives, number `_freed` and later are not free yet, those before `_collected` are
    done, and `_streams_left` streams of collective `_collected` are under way.
    """

    def __init__(self, shared: AllNpus, number: int) -> None:
        self.number = number
        self.finished_ns: int | None = None
        self._shared = shared
        self._clock = EventClock(shared.agenda)
        self._bundles = Bundles(self._clock, shared.delays)
        self._queues: dict[Lane, NpuQueue] = {}
        work = shared.work
        self._computed = 0
        self._computing = False
        self._freed = 0 if work.computes else len(work.collectives)
        self._collected = 0
        self._streams_left = 0
        self._streams_made = 0

    def fire(self) -> None:
        """Begin the program."""
        self._issue()
        self._check_finished()

    def _issue(self) -> None:
        work = self._shared.work
        if not self._streams_left and self._collected < self._freed:
            self._collect()
        if not self._computing and self._computed < len(work.computes):
            compute = work.computes[self._computed]
            if not compute.joins or self._collected == self._freed:
                self._computing = True
                self._clock.plan(compute.duration_ns, self._computed_one)

    def _computed_one(self) -> None:
        self._computing = False
        self._freed += self._shared.work.computes[self._computed].frees
        self._computed += 1
        self._issue()
        self._check_finished()

    def _collect(self) -> None:
        streams = self._shared.maker.streams(self._collected)
        self._streams_left = len(streams)
        for legs in streams:
            stream = Stream(self._streams_made, legs)
            self._streams_made += 1
            self._queue(stream).waiting.append(stream)
            self._fill(stream.leg.lane)

    def _check_finished(self) -> None:
        work = self._shared.work
        if self._computed == len(work.computes) and self._collected == len(work.collectives):
            self.finished_ns = self._shared.agenda.now_ns

    def _queue(self, stream: Stream) -> NpuQueue:
        if (queue := self._queues.get(stream.leg.lane)) is None:
            queue = self._queues[stream.leg.lane] = NpuQueue()
        return queue

    def _fill(self, lane: Lane) -> None:
        queue = self._queues[lane]
        while queue.waiting and queue.running < self._shared.slots:
            queue.running += 1
            self._start(queue.waiting.popleft())

    def _leave(self, stream: Stream) -> None:
        """End a leg. As in ASTRA-sim, the stream waits for its next leg before its slot is free."""
        if (log := self._shared.log) is not None and self.number == 0:
            now_ns = self._shared.agenda.now_ns
            log.append(Interval(stream.leg.stage, stream.started_ns, now_ns))
        left = stream.leg.lane
        stream.at += 1
        if stream.at == len(stream.legs):
            self._streams_left -= 1
            if not self._streams_left:
                self._collected += 1
                self._issue()
                self._check_finished()
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
        shared, leg = self._shared, stream.leg
        group = leg.stage.group
        plan, times_ns = shared.plan(leg.stage)
        place = group.position(self.number)
        pairwise = plan.pairwise

        def exchange(index: int) -> None:
            message = plan.messages[index]
            if pairwise:
                there = back = place ^ message.distance
            else:
                there = (place + leg.direction * message.distance) % group.nodes
                back = (place - leg.direction * message.distance) % group.nodes
            size = message.size_bytes
            receiver, sender = group.member(self.number, there), group.member(self.number, back)
            shared.mailbox.send((stream.number, self.number, receiver, size), times_ns[index])
            shared.mailbox.expect((stream.number, sender, self.number, size), agent.receive)

        agent = PacketAgent(plan, self._bundles, exchange, lambda: self._leave(stream))
        agent.start()

    def _start_tree(self, stream: Stream) -> None:
        shared, leg = self._shared, stream.leg
        group, size = leg.stage.group, leg.stage.input_bytes
        place = group.position(self.number)

        def send(position: int) -> None:
            duration_ns = shared.network.message_ns(group, (position - place) % group.nodes, size)
            receiver = group.member(self.number, position)
            shared.mailbox.send((stream.number, self.number, receiver, size), duration_ns)

        def expect(position: int, action: Action) -> None:
            sender = group.member(self.number, position)
            shared.mailbox.expect((stream.number, sender, self.number, size), action)

        node = tree(group.nodes, leg.variant)[place]
        done = partial(self._leave, stream)
        TreeAgent(node, size, self._bundles, (send, expect), done).start()
