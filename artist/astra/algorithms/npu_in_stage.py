"""One NPU in a stage of ring, direct or halvingDoubling, message by message.

An NPU handles *bundles*: `window` of them when the stage begins, and one more for each message
that arrives. A bundle costs the endpoint delay and, where the collective asks for it, the
reduction of its bytes (`artist.astra.messages.message_costs`). A handled bundle is a credit:
it lets the NPU send its next message. The stage ends when all messages are sent and all bundles
are handled. With a window of 1 and two messages:

    bundle 0 -> send message 0 ... message 0 of the other side arrives
    bundle 1 -> send message 1 ... message 1 of the other side arrives
    bundle 2 -> end

The modules `ring`, `direct` and `halving_doubling` make the plan of a stage. A double binary tree
has an agent of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from artist.astra.messages.chunks_and_stages import Stage
from artist.astra.messages.event_order import Action
from artist.astra.messages.message_costs import Bundles
from artist.workload.layers import Collective


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a stage: `size_bytes` to the NPU `distance` positions on in the group."""

    distance: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class PacketPlan:
    """What each NPU does in a stage.

    `reduced_bytes[i]` are the bytes that bundle i reduces (None: no reduction).

    With a `barrier` of b, the messages from number b on wait until b messages have arrived.
    Only the direct all-reduce has one.

    In a `pairwise` stage two NPUs exchange messages with each other, at positions p and
    p XOR distance. Otherwise an NPU sends forwards and receives from behind.
    """

    window: int
    messages: tuple[Message, ...]
    reduced_bytes: tuple[int | None, ...]
    barrier: int | None = None
    pairwise: bool = False


def reduced_bytes_of_bundles(
    stage: Stage, messages: tuple[Message, ...], plain: int, reduced: int
) -> tuple[int | None, ...]:
    """The bytes that each bundle reduces, None for a bundle without reduction.

    Bundles come in turns: `plain` of them without reduction, then `reduced` of them with. A
    reduce-scatter reduces in every turn, an all-reduce in every other turn, the first included.
    """
    sizes: list[int | None] = []
    for bundle in range(plain + len(messages)):
        turn, place = divmod(bundle, plain + reduced)
        reduces = stage.collective is Collective.REDUCE_SCATTER or (
            stage.collective is Collective.ALL_REDUCE and turn % 2 == 0
        )
        # ASTRA-sim charges a reduction for the bytes of the message that is sent after it;
        # after the last message, for the bytes of that one.
        following = min(bundle, len(messages) - 1)
        sizes.append(messages[following].size_bytes if reduces and place >= plain else None)
    return tuple(sizes)


class PacketAgent:
    """One NPU in one stage.

    `exchange(i)` sends message i and announces that the counterpart of message i is expected.
    When that arrives, the owner of the agent calls `receive`. `done` is called once, at the end.

    `close_call` becomes true when a bundle is handled at the very instant in which the barrier
    opens. The order of these two events decides when the next message leaves.
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
        self._blocked_ns = self._opened_ns = -1  # before the first instant
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
        """Send what a handled bundle allows; at the barrier, only after as many arrivals."""
        self._credits += 1
        barrier = self._plan.barrier
        if barrier is None or self._sent < barrier:
            self._send()
        elif self._received >= barrier:
            self.close_call |= self._handler.now_ns == self._opened_ns
            # Credits from before the barrier opened are kept; the first credit after it spends
            # up to a window of them at once.
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
