"""The double binary tree as ASTRA-sim runs it: one tree per stage, the two variants in turn.

A perfect binary tree of n - 1 nodes, numbered in order, hangs off a single root,
which has the last number in variant 0 and the first in variant 1. Every edge
carries the whole chunk up and down again. One chunk alone, with s the time of a
message, e the endpoint delay, R the reduction and k = log2(n), takes

    2 k s + 2 e + (2 k - 1) (e + R)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from artist.astra.model.agenda import Action
from artist.astra.model.bundles import Bundles


@dataclass(frozen=True, slots=True)
class TreeNode:
    """Neighbours of one position in the tree; a leaf has no children, the root no parent."""

    parent: int | None
    children: tuple[int, ...]


@cache
def tree(nodes: int, variant: int) -> tuple[TreeNode, ...]:
    """The tree over `nodes` (a power of two) positions."""
    first = variant
    root = nodes - 1 if variant == 0 else 0
    found = [TreeNode(None, ())] * nodes
    top = first + nodes // 2 - 1
    found[root] = TreeNode(None, (top,))

    def hang(position: int, parent: int, reach: int) -> None:
        children = (position - reach, position + reach) if reach else ()
        found[position] = TreeNode(parent, children)
        for child in children:
            hang(child, position, reach // 2)

    hang(top, root, nodes // 4)
    return tuple(found)


class TreeAgent:
    """One NPU in one tree stage.

    `send(position)` sends the chunk; `expect(position, action)` performs an action
    when the chunk has arrived from there; `done` is called once, at the end.
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
