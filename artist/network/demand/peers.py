"""To whom an NPU sends what it sends on a dimension, by collective algorithm.

With n NPUs in a group and B bytes that each of them sends on average, position p sends

    ring               B to p + 1
    direct             B / (n - 1) to each of the others
    halving-doubling   B x (1/2, 1/4, ...) / (1 - 1/n) to p XOR 1, p XOR 2, ...
    double binary tree B n / (2 (n - 1)) each way along each edge; of the two trees, half on each

The last two follow from the tables in `artist.astra.algorithms`: a message to p XOR 2^i has
S / 2^(i + 1) bytes, and every edge of a tree carries the chunk once up and once down. ASTRA-sim
gives its trees to stages in turn, so a single stage runs on one of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from artist.astra.algorithms.double_binary_tree import tree
from artist.astra.messages.groups import Algorithm, GroupFamily

Positions = npt.NDArray[np.int64]


class Sending(NamedTuple):
    """Positions that send, the positions that receive, and which part of B each message is."""

    sources: Positions
    targets: Positions
    part: float


def sendings(algorithm: Algorithm, nodes: int) -> Iterator[Sending]:
    """Everything that the positions 0 to `nodes - 1` of a group send."""
    here = np.arange(nodes)
    match algorithm.family:
        case GroupFamily.RING:
            yield Sending(here, (here + 1) % nodes, 1.0)
        case GroupFamily.DIRECT:
            for distance in range(1, nodes):
                yield Sending(here, (here + distance) % nodes, 1.0 / (nodes - 1))
        case GroupFamily.HALVING_DOUBLING:
            distance = 1
            while distance < nodes:
                part = 1.0 / (2 * distance) / (1.0 - 1.0 / nodes)
                yield Sending(here, here ^ distance, part)
                distance *= 2
        case GroupFamily.TREE:
            yield from _trees(nodes)


def _trees(nodes: int) -> Iterator[Sending]:
    part = nodes / (2 * (nodes - 1)) / 2
    for variant in (0, 1):
        edges = [
            (child, node.parent)
            for child, node in enumerate(tree(nodes, variant))
            if node.parent is not None
        ]
        children, parents = np.array(edges).T
        yield Sending(children, parents, part)
        yield Sending(parents, children, part)
