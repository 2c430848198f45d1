"""The graph of one iteration, GPU by GPU: what computes or sends, what it waits for, when it runs.

A GPU runs at most one computation and at most one collective or send at a time: these are its two
**lanes**. Operations of the host have a lane of their own, and a receive takes none. A node is
ready when all nodes that it waits for have ended. Whenever something ends on a GPU, its ready nodes
are taken in ascending order, and each begins if its lane is free. This is what ASTRA-sim's workload
layer does.

A send ends when its message arrives, whether or not anybody waits for it. A receive ends with the
arrival of a message with the same tag, bytes, sender and receiver.

`play` runs the nodes of **representatives**, with known durations. A representative stands for all
GPUs that do the same at the same time, such as those of a pipeline stage. All members of a
collective begin it at one instant, so it takes as long as it would alone. A message goes from one
representative to another.
"""

from __future__ import annotations

import hashlib
import heapq
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum

from artist.workload.layers import CarriedRounding, Collective


class NodeAction(IntEnum):
    """What a node does."""

    COMPUTE = 0
    COLLECTIVE = 1
    SEND = 2
    RECEIVE = 3
    HOST = 4
    """A computation of the host, as traces of PyTorch's profiler have them."""
    SERIES = 5
    """Computations and collectives that alternate (`LaneProgram`)."""


Over = tuple[bool, ...] | int | None
"""Who takes part in a collective of a placed job. A tuple: the GPUs that differ only in the
dimensions that are True. A number: the communicator of this number. None: all GPUs."""


@dataclass(frozen=True, slots=True)
class GraphNode:
    """One operation of a GPU. `after` are the places of the nodes that it waits for.

    `size_bytes` is as ASTRA-sim counts it: for an all-gather, what one GPU contributes. The
    collective NONE is one that ASTRA-sim does not know, such as a broadcast: it takes `compute_us`.
    `peer` is the GPU to which a message goes, or from which it comes.
    """

    kind: NodeAction
    after: tuple[int, ...] = ()
    compute_us: int = 0
    collective: Collective = Collective.NONE
    size_bytes: int = 0
    over: Over = None
    peer: int = 0
    tag: int = 0


@dataclass(frozen=True, slots=True)
class JobGraph:
    """The nodes of every GPU of a job, and its communicators by number.

    Graphs are compared by `digest`, the hash of their content.
    """

    name: str = field(compare=False)
    programs: tuple[tuple[GraphNode, ...], ...] = field(compare=False)
    communicators: Mapping[int, tuple[int, ...]] = field(compare=False, default_factory=dict)
    digest: str = ""

    def __post_init__(self) -> None:
        if not self.digest:
            text = repr((self.programs, sorted(self.communicators.items())))
            object.__setattr__(self, "digest", hashlib.sha256(text.encode()).hexdigest())

    def compute_ns(self, gpu: int) -> int:
        """How long a GPU computes."""
        return sum(
            duration_ns(x.compute_us) for x in self.programs[gpu] if x.kind is NodeAction.COMPUTE
        )

    def scaled(self, compute_scale: float) -> JobGraph:
        """The graph with compute times `compute_scale` times as long, in whole microseconds.

        The rounding error of a node is carried into the next one of its GPU, as in `quantised`.
        """

        def scaled(program: tuple[GraphNode, ...]) -> tuple[GraphNode, ...]:
            rounding = CarriedRounding()
            return tuple(
                replace(node, compute_us=rounding.next(node.compute_us * compute_scale))
                if node.kind is NodeAction.COMPUTE
                else node
                for node in program
            )

        # GPUs that do the same share one program, and still do afterwards.
        known = {id(program): scaled(program) for program in self.programs}
        return replace(self, programs=tuple(known[id(one)] for one in self.programs), digest="")


def duration_ns(compute_us: float) -> int:
    """Nanoseconds of a computation in ASTRA-sim: whole microseconds, and 1 ns for none."""
    return int(compute_us) * 1000 or 1


def followers_of(after: Sequence[Sequence[int]]) -> list[list[int]]:
    """For each node, the nodes that wait for it; `after[i]` are those that node i waits for."""
    followers: list[list[int]] = [[] for _ in after]
    for node, earlier in enumerate(after):
        for one in earlier:
            followers[one].append(node)
    return followers


def place_in_cycle(nodes: Sequence[GraphNode]) -> int | None:
    """The first node that a cycle of waits keeps from starting; None if there is no cycle."""
    waits = [len(node.after) for node in nodes]
    followers = followers_of([node.after for node in nodes])
    free = [number for number, count in enumerate(waits) if not count]
    for number in free:  # grows during the loop
        for follower in followers[number]:
            waits[follower] -= 1
            if not waits[follower]:
                free.append(follower)
    return next((number for number, count in enumerate(waits) if count), None)


Channel = tuple[int, ...]
"""Sender, receiver, tag and bytes of messages. In a channel, receives match sends in order."""

NO_CHANNEL: Channel = ()


@dataclass(slots=True)
class LaneProgram:
    """The nodes of one representative, in ascending order.

    `durations_ns[i]` is how long node i takes (0 for a receive), `after[i]` is what it waits for,
    and `channels[i]` is the channel of a send or receive. A node of kind `SERIES` takes both lanes:
    it stands for alternating computations and collectives between which nothing else is sent.
    """

    kinds: list[NodeAction] = field(default_factory=list)
    durations_ns: list[int] = field(default_factory=list)
    after: list[tuple[int, ...]] = field(default_factory=list)
    channels: list[Channel] = field(default_factory=list)

    def add(
        self,
        kind: NodeAction,
        duration_ns: int,
        after: tuple[int, ...],
        channel: Channel = NO_CHANNEL,
    ) -> int:
        """Append a node and return its number."""
        self.kinds.append(kind)
        self.durations_ns.append(duration_ns)
        self.after.append(after)
        self.channels.append(channel)
        return len(self.kinds) - 1


@dataclass(slots=True)
class Played:
    """When the last node of each representative ended, and the start of every node.

    `finish_ns` is None for a representative that waits forever.
    """

    finish_ns: list[int | None]
    starts_ns: list[list[int]]


_COMPUTE, _COMM, _HOST = _LANES = (0, 1, 2)
_LANE = {
    NodeAction.COMPUTE: _COMPUTE,
    NodeAction.COLLECTIVE: _COMM,
    NodeAction.SEND: _COMM,
    NodeAction.SERIES: _COMM,
    NodeAction.HOST: _HOST,
}


def play(programs: Sequence[LaneProgram], planned_before_ns: int = 1) -> Played:
    """Play all representatives.

    Ends at the same instant are processed in the order in which they were planned. ASTRA-sim plans
    the end of a collective `planned_before_ns` ahead, and any other end when the node begins.
    """
    gpus = [_Gpu(number, program) for number, program in enumerate(programs)]
    agenda = _Agenda(planned_before_ns)
    for gpu in gpus:
        gpu.begin(agenda, 0)
    events = agenda.events
    while events:
        now, _, _, number, node = heapq.heappop(events)
        gpu = gpus[number]
        gpu.end(node, now, agenda)
        if gpu.kinds[node] is NodeAction.SEND:
            receiver = agenda.deliver(gpu.channels[node])
            if receiver is not None:
                gpus[receiver[0]].end(receiver[1], now, agenda)
    return Played(
        [None if gpu.left else gpu.finish_ns for gpu in gpus], [gpu.starts_ns for gpu in gpus]
    )


class _Agenda:
    """The ends to come, messages without a receive yet, and receives without a message yet."""

    def __init__(self, planned_before_ns: int) -> None:
        self.events: list[tuple[int, int, int, int, int]] = []
        self._before_ns = planned_before_ns
        self._serial = 0
        self._arrived: dict[Channel, int] = {}
        self._waiting: dict[Channel, deque[tuple[int, int]]] = {}

    def plan(self, kind: NodeAction, now: int, end: int, gpu: int, node: int) -> None:
        planned = now if kind is not NodeAction.COLLECTIVE else max(now, end - self._before_ns)
        self._serial += 1
        heapq.heappush(self.events, (end, planned, self._serial, gpu, node))

    def deliver(self, channel: Channel) -> tuple[int, int] | None:
        """The receive that a message ends; None if none waits yet."""
        waiting = self._waiting.get(channel)
        if waiting:
            return waiting.popleft()
        self._arrived[channel] = self._arrived.get(channel, 0) + 1
        return None

    def receive(self, now: int, channel: Channel, gpu: int, node: int) -> None:
        """Wait for a message; one that has arrived ends the receive at once."""
        if self._arrived.get(channel):
            self._arrived[channel] -= 1
            self.plan(NodeAction.RECEIVE, now, now, gpu, node)
        else:
            self._waiting.setdefault(channel, deque()).append((gpu, node))


class _Gpu:
    """A representative: its lanes, and the nodes that are ready."""

    __slots__ = (
        "_busy", "_durations", "_followers", "_ready", "_waits", "channels", "finish_ns", "kinds",
        "left", "number", "starts_ns",
    )  # fmt: skip

    def __init__(self, number: int, program: LaneProgram) -> None:
        self.number = number
        self.kinds, self.channels = program.kinds, program.channels
        self.finish_ns = 0
        self.left = len(program.kinds)
        self.starts_ns = [0] * self.left
        self._durations = program.durations_ns
        self._waits = [len(after) for after in program.after]
        self._followers = followers_of(program.after)
        self._ready: tuple[list[int], ...] = ([], [], [])
        self._busy = [False, False, False]

    def begin(self, agenda: _Agenda, now: int) -> None:
        for node, waits in enumerate(self._waits):
            if not waits:
                self._free(node, now, agenda)
        self._issue(now, agenda)

    def end(self, node: int, now: int, agenda: _Agenda) -> None:
        """End a node: free its lane, and begin what waited for either."""
        kind = self.kinds[node]
        if kind is not NodeAction.RECEIVE:
            self._busy[_LANE[kind]] = False
            if kind is NodeAction.SERIES:
                self._busy[_COMPUTE] = False
        waits = self._waits
        for follower in self._followers[node]:
            waits[follower] -= 1
            if not waits[follower]:
                self._free(follower, now, agenda)
        self.left -= 1
        self.finish_ns = now
        self._issue(now, agenda)

    def _free(self, node: int, now: int, agenda: _Agenda) -> None:
        kind = self.kinds[node]
        if kind is NodeAction.RECEIVE:
            self.starts_ns[node] = now
            agenda.receive(now, self.channels[node], self.number, node)
        else:
            heapq.heappush(self._ready[_LANE[kind]], node)

    def _issue(self, now: int, agenda: _Agenda) -> None:
        """Begin the first ready node of each free lane, in ascending order."""
        ready, busy = self._ready, self._busy
        lanes = []
        for lane in _LANES:  # faster than a comprehension, and this runs at every end of a node
            if ready[lane] and not busy[lane]:
                lanes.append(lane)
        if len(lanes) > 1:
            lanes.sort(key=lambda lane: ready[lane][0])
        for lane in lanes:
            node = ready[lane][0]
            kind = self.kinds[node]
            if kind is NodeAction.SERIES:
                if busy[_COMPUTE]:
                    continue
                busy[_COMPUTE] = True
            heapq.heappop(ready[lane])
            busy[lane] = True
            self.starts_ns[node] = now
            agenda.plan(kind, now, now + self._durations[node], self.number, node)
