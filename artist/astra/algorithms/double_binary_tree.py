"""Double binary tree: all NPUs send the whole chunk up to a root, which sends it down again.

ASTRA-sim has two trees (variants 0 and 1) and gives them to the stages in turn: a stage runs on
one of them. The root has the last position in variant 0 and the first one in variant 1. Under
it hangs a perfect binary tree of the other n - 1 positions, numbered in order. With n = 4:

    variant 0    3          variant 1    0
                 |                       |
                 1                       2
                / \\                     / \\
               0   2                   1   3

Every edge carries the whole chunk of S bytes up and down. With s the time of such a message, e
the endpoint delay, R the time to reduce S bytes and k = log2(n), one chunk alone takes

    time = 2 k s + 2 e + (2 k - 1) (e + R)

This equation is not used: NPUs of a tree finish at different times, so all of them are played,
message by message, by `TreeAgent`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from artist.astra.messages.chunks_and_stages import Stage
from artist.astra.messages.event_order import Action
from artist.astra.messages.message_costs import Bundles, MessageNetwork


@dataclass(frozen=True, slots=True)
class TreeNode:
    """The neighbours of one position in the tree. A leaf has no children, the root no parent."""

    parent: int | None
    children: tuple[int, ...]


@cache
def tree(nodes: int, variant: int) -> tuple[TreeNode, ...]:
    """The tree over `nodes` (a power of two) positions."""
    first = variant
    root = nodes - 1 if variant == 0 else 0
    made = [TreeNode(None, ())] * nodes
    top = first + nodes // 2 - 1
    made[root] = TreeNode(None, (top,))

    def hang(position: int, parent: int, reach: int) -> None:
        children = (position - reach, position + reach) if reach else ()
        made[position] = TreeNode(parent, children)
        for child in children:
            hang(child, position, reach // 2)

    hang(top, root, nodes // 4)
    return tuple(made)


def sent_bytes(stage: Stage, network: MessageNetwork) -> list[int]:
    """Bytes that one NPU sends in a stage, per dimension: the mean over the NPUs.

    The n - 1 edges of the tree carry the chunk up and down.
    """
    group = stage.group
    sent = [0] * len(network.npus)
    sent[group.index] = 2 * (group.nodes - 1) * stage.input_bytes // group.nodes
    return sent


class TreeAgent:
    """One NPU in one stage.

    `send(position)` sends the chunk there. `expect(position, action)` performs an action when
    the chunk has arrived from there. `done` is called once, at the end.
    """

    def __init__(
        self,
        node: TreeNode,
        size_bytes: int,
        bundles: Bundles,
        wire: tuple[Callable[[int], None], Callable[[int, Action], None]],
        done: Action,
    ) -> None:
        self._node = node
        self._bundles = bundles
        self._size = size_bytes
        self._send, self._expect = wire
        self._done = done
        self._reduced = 0

    def start(self) -> None:
        """Begin the stage."""
        if self._node.children:
            for child in self._node.children:
                self._expect(child, lambda: self._reduce(self._child_reduced))
        else:
            self._copy(self._ask_parent)

    def _child_reduced(self) -> None:
        self._reduced += 1
        if self._reduced == len(self._node.children):
            if self._node.parent is None:
                self._answer()
            else:
                self._ask_parent()

    def _ask_parent(self) -> None:
        parent = self._node.parent
        assert parent is not None
        self._send(parent)
        if self._node.children:
            # ASTRA-sim charges a reduction on the way down too, except to leaves.
            self._expect(parent, lambda: self._reduce(self._answer))
        else:
            self._expect(parent, lambda: self._copy(self._done))

    def _answer(self) -> None:
        for child in self._node.children:
            self._send(child)
        self._done()

    def _copy(self, action: Action) -> None:
        self._bundles.handle(None, action)

    def _reduce(self, action: Action) -> None:
        self._bundles.handle(self._size, action)
