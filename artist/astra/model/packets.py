"""Ring, direct and halvingDoubling as ASTRA-sim runs them on one NPU.

An NPU handles *bundles*: `window` of them to begin with, and one more for each
message that arrives. A bundle costs the endpoint delay, and the reduction of
its bytes where the collective asks for it; then it lets the NPU send its next
message. The stage ends when all is sent and all bundles are handled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from artist.astra.model.agenda import Action
from artist.astra.model.bundles import Bundles
from artist.astra.model.collectives import (
    Message,
    Stage,
    halving_doubling_messages,
    ring_messages,
    share_bytes,
)
from artist.astra.model.messages import Kind
from artist.workload.layers import Collective


@dataclass(frozen=True, slots=True)
class PacketPlan:
    """What each NPU does in a stage.

    `reduced_bytes[i]` are reduced by bundle i (None: no reduction). Of a direct
    all-reduce the messages from `barrier` on wait until `barrier` have arrived.
    """

    window: int
    messages: tuple[Message, ...]
    reduced_bytes: tuple[int | None, ...]
    barrier: int | None = None


def packet_plan(stage: Stage) -> PacketPlan:
    """The plan of a stage that is not a tree."""
    nodes = stage.group.nodes
    match stage.group.algorithm.kind:
        case Kind.RING:
            messages = (Message(1, share_bytes(stage)),) * ring_messages(stage)
            return PacketPlan(1, messages, _reductions(stage, messages, 1, nodes - 1))
        case Kind.DIRECT:
            return _direct_plan(stage)
        case Kind.HALVING_DOUBLING:
            messages = halving_doubling_messages(stage)
            rounds = nodes.bit_length() - 1
            return PacketPlan(1, messages, _reductions(stage, messages, 1, rounds - 1))
        case Kind.TREE:
            raise ValueError("a tree sends no packets")


def _direct_plan(stage: Stage) -> PacketPlan:
    peers = stage.group.nodes - 1
    window = direct_window(stage)
    wave = tuple(Message(distance, share_bytes(stage)) for distance in range(1, peers + 1))
    if stage.collective is not Collective.ALL_REDUCE:
        return PacketPlan(window, wave, _reductions(stage, wave, window, window))
    return PacketPlan(window, wave * 2, _reductions(stage, wave * 2, window, window), peers)


def direct_window(stage: Stage) -> int:
    """How many peers a direct stage serves at a time."""
    peers = stage.group.nodes - 1
    window = stage.group.algorithm.window
    return peers if window is None else min(window, peers)


def _reductions(
    stage: Stage, messages: tuple[Message, ...], plain: int, reduced: int
) -> tuple[int | None, ...]:
    """Bundles come in turns: `plain` without reduction, then `reduced` with.

    A reduce-scatter reduces in every turn, an all-reduce in every other one.
    A reduction is charged on the bytes of the message that follows it.
    """
    found: list[int | None] = []
    for bundle in range(plain + len(messages)):
        turn, place = divmod(bundle, plain + reduced)
        reduces = stage.collective is Collective.REDUCE_SCATTER or (
            stage.collective is Collective.ALL_REDUCE and turn % 2 == 0
        )
        last = min(bundle, len(messages) - 1)
        found.append(messages[last].size_bytes if reduces and place >= plain else None)
    return tuple(found)


class PacketAgent:
    """One NPU in one stage.

    `exchange(i)` sends message i and expects its counterpart, whose arrival the
    owner reports by `receive`; `done` is called once, at the end. `close_call`
    becomes true when a bundle meets the barrier at the instant in which it opens:
    the order of the two decides when the next message leaves.
    """

    def __init__(
        self,
        plan: PacketPlan,
        bundles: Bundles,
        exchange: Callable[[int], None],
        done: Action,
    ) -> None:
        self._plan = plan
        self._handler = bundles
        self._exchange = exchange
        self._done = done
        self._bundles = 0
        self._credits = 0
        self._sent = 0
        self._received = 0
        self._blocked_ns = self._opened_ns = -1
        self.close_call = False

    def start(self) -> None:
        """Begin the stage."""
        for _ in range(self._plan.window):
            self._bundle()

    def receive(self) -> None:
        """Take a message that arrived."""
        self._received += 1
        if self._received == self._plan.barrier:
            self._opened_ns = self._handler.now_ns
            self.close_call = self._blocked_ns == self._opened_ns
        self._bundle()

    def _bundle(self) -> None:
        size = self._plan.reduced_bytes[self._bundles]
        self._bundles += 1
        self._handler.handle(size, self._credit)

    def _credit(self) -> None:
        self._credits += 1
        barrier = self._plan.barrier
        if barrier is None or self._sent < barrier:
            self._send()
        elif self._received >= barrier:
            self.close_call |= self._handler.now_ns == self._opened_ns
            for _ in range(self._plan.window):
                self._send()
        else:
            self._blocked_ns = self._handler.now_ns
        if self._sent == len(self._plan.messages) and self._credits == self._plan.window:
            self._done()

    def _send(self) -> None:
        if self._credits and self._sent < len(self._plan.messages):
            self._exchange(self._sent)
            self._sent += 1
            self._credits -= 1
