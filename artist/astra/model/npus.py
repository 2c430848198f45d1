"""All NPUs of a query, message by message, in ASTRA-sim's order of events.

Exact where NPUs differ (double binary trees, ties between stages), including
the deadlocks; costs time in proportion to NPUs x messages.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import partial

from artist.astra.model.agenda import Action, Agenda, Clock
from artist.astra.model.bundles import Bundles, Delays
from artist.astra.model.collectives import Stage
from artist.astra.model.double_binary_tree import TreeAgent, tree
from artist.astra.model.messages import Group, Kind, Network
from artist.astra.model.packets import PacketAgent, PacketPlan, packet_plan
from artist.astra.model.pipeline import Interval
from artist.astra.model.streams import Leg, StreamMaker
from artist.astra.model.training_loop import Program

Address = tuple[int, int, int, int]
"""(stream, sender, receiver, bytes): messages alike in all four arrive in the order of sending."""


class Mailbox:
    """Matches what arrives with what is expected."""

    def __init__(self, agenda: Agenda) -> None:
        self._agenda = agenda
        self._arrived: dict[Address, int] = {}
        self._expected: dict[Address, deque[Action]] = {}

    def send(self, address: Address, duration_ns: int) -> None:
        """Let a message arrive after its time on the wire."""
        self._agenda.plan(duration_ns, partial(self._arrive, address))

    def expect(self, address: Address, action: Action) -> None:
        """Perform `action` when the next message from there has arrived."""
        if arrived := self._arrived.pop(address, 0):
            if arrived > 1:
                self._arrived[address] = arrived - 1
            self._agenda.plan(0, action)
        else:
            self._expected.setdefault(address, deque()).append(action)

    def _arrive(self, address: Address) -> None:
        waiting = self._expected.get(address)
        if waiting is None:
            self._arrived[address] = self._arrived.get(address, 0) + 1
            return
        action = waiting.popleft()
        if not waiting:
            del self._expected[address]
        action()


@dataclass(slots=True)
class Stream:
    """One chunk on its way through its legs on one NPU."""

    number: int
    legs: tuple[Leg, ...]
    at: int = 0
    started_ns: int = 0

    @property
    def leg(self) -> Leg:
        """Where it is."""
        return self.legs[self.at]


class Machine:
    """What all NPUs share."""

    def __init__(
        self, network: Network, delays: Delays, slots: int, maker: StreamMaker, work: Program
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
        """When each NPU finished, in ns; None for one that never did (a deadlock).

        `log` keeps the stages of the first NPU in `self.log`.
        """
        self.log = [] if log else None
        npus = [Npu(self, number) for number in range(self.network.total_npus)]
        for npu in npus:
            npu.fire()
        self.agenda.run()
        return [npu.finished_ns for npu in npus]

    def plan(self, stage: Stage) -> tuple[PacketPlan, tuple[int, ...]]:
        """The packet plan of a stage and the time of each of its messages, made once."""
        if (found := self._plans.get(stage)) is None:
            plan = packet_plan(stage)
            times = (self.message_ns(stage.group, m.distance, m.size_bytes) for m in plan.messages)
            found = self._plans[stage] = plan, tuple(times)
        return found

    def message_ns(self, group: Group, distance: int, size_bytes: int) -> int:
        """Time of a message within a group."""
        return self.network.message_ns(self.network.route(group, distance), size_bytes)


class Lane:
    """A queue of one NPU with its slots: a stream holds one for a whole leg."""

    __slots__ = ("running", "waiting")

    def __init__(self) -> None:
        self.running = 0
        self.waiting: deque[Stream] = deque()


class Npu:
    """One NPU: what it computes, its queues, and the streams in them."""

    def __init__(self, machine: Machine, number: int) -> None:
        self.number = number
        self.finished_ns: int | None = None
        self._machine = machine
        self._clock = Clock(machine.agenda)
        self._bundles = Bundles(self._clock, machine.delays)
        self._lanes: dict[tuple[int, int], Lane] = {}
        work = machine.work
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
        work = self._machine.work
        if not self._streams_left and self._collected < self._freed:
            self._collect()
        if not self._computing and self._computed < len(work.computes):
            compute = work.computes[self._computed]
            if not compute.joins or self._collected == self._freed:
                self._computing = True
                self._clock.plan(compute.duration_ns, self._computed_one)

    def _computed_one(self) -> None:
        self._computing = False
        self._freed += self._machine.work.computes[self._computed].frees
        self._computed += 1
        self._issue()
        self._check_finished()

    def _collect(self) -> None:
        streams = self._machine.maker.streams(self._collected)
        self._streams_left = len(streams)
        for legs in streams:
            stream = Stream(self._streams_made, legs)
            self._streams_made += 1
            self._lane(stream).waiting.append(stream)
            self._fill(stream.leg.lane)

    def _check_finished(self) -> None:
        work = self._machine.work
        if self._computed == len(work.computes) and self._collected == len(work.collectives):
            self.finished_ns = self._machine.agenda.now_ns

    def _lane(self, stream: Stream) -> Lane:
        if (lane := self._lanes.get(stream.leg.lane)) is None:
            lane = self._lanes[stream.leg.lane] = Lane()
        return lane

    def _fill(self, key: tuple[int, int]) -> None:
        lane = self._lanes[key]
        while lane.waiting and lane.running < self._machine.slots:
            lane.running += 1
            self._start(lane.waiting.popleft())

    def _leave(self, stream: Stream) -> None:
        """End a leg: ASTRA-sim queues the stream anew before it frees the slot it held."""
        if (log := self._machine.log) is not None and self.number == 0:
            now_ns = self._machine.agenda.now_ns
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
            self._lane(stream).waiting.append(stream)
        self._lanes[left].running -= 1
        self._fill(left)
        if stream.at < len(stream.legs):
            self._fill(stream.leg.lane)

    def _start(self, stream: Stream) -> None:
        stream.started_ns = self._machine.agenda.now_ns
        if stream.leg.stage.group.algorithm.kind is Kind.TREE:
            self._start_tree(stream)
        else:
            self._start_packets(stream)

    def _start_packets(self, stream: Stream) -> None:
        machine, leg = self._machine, stream.leg
        group = leg.stage.group
        plan, times_ns = machine.plan(leg.stage)
        place = group.position(self.number)
        pairwise = group.algorithm.kind is Kind.HALVING_DOUBLING

        def exchange(index: int) -> None:
            message = plan.messages[index]
            if pairwise:
                there = back = place ^ message.distance
            else:
                there = (place + leg.direction * message.distance) % group.nodes
                back = (place - leg.direction * message.distance) % group.nodes
            size = message.size_bytes
            receiver, sender = group.member(self.number, there), group.member(self.number, back)
            machine.mailbox.send((stream.number, self.number, receiver, size), times_ns[index])
            machine.mailbox.expect((stream.number, sender, self.number, size), agent.receive)

        agent = PacketAgent(plan, self._bundles, exchange, lambda: self._leave(stream))
        agent.start()

    def _start_tree(self, stream: Stream) -> None:
        machine, leg = self._machine, stream.leg
        group, size = leg.stage.group, leg.stage.input_bytes
        place = group.position(self.number)

        def send(position: int) -> None:
            duration_ns = machine.message_ns(group, (position - place) % group.nodes, size)
            receiver = group.member(self.number, position)
            machine.mailbox.send((stream.number, self.number, receiver, size), duration_ns)

        def expect(position: int, action: Action) -> None:
            sender = group.member(self.number, position)
            machine.mailbox.expect((stream.number, sender, self.number, size), action)

        node = tree(group.nodes, leg.variant)[place]
        done = partial(self._leave, stream)
        TreeAgent(node, size, self._bundles, (send, expect), done).start()
