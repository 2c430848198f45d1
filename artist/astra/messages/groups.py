"""Algorithms by name, and the groups of NPUs that they run among.

A *group* is the set of NPUs that exchange messages in one stage of a collective: the NPUs of
one dimension, or all NPUs for the `one*` algorithms. NPU ids count the first dimension fastest.
For example, with 4 NPUs in dimension 0 and 2 in dimension 1, NPU 6 belongs to two groups:

    dimension 0: NPUs 4 5 6 7, stride 1, NPU 6 is at position 2
    dimension 1: NPUs 2 6,     stride 4, NPU 6 is at position 1

A collective over a mask of dimensions runs in the groups of these dimensions. A *communicator* is
a group that a trace lists NPU by NPU. ASTRA-sim makes one flat ring of it in the order of the list,
whatever dimensions it spans (`Communicator`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import cache
from math import prod

from artist.errors import BackendSettingError

_NAME = re.compile(
    r"(?P<ring>ring|oneRing)|(?P<halving>halvingDoubling|oneHalvingDoubling)"
    r"|(?P<tree>doubleBinaryTree)|(?P<direct>direct|oneDirect)(?P<window>[1-9][0-9]{0,4})?"
)


class GroupFamily(Enum):
    """Families of collective algorithms; each has a module in `artist.astra.algorithms`."""

    RING = "ring"
    DIRECT = "direct"
    HALVING_DOUBLING = "halvingDoubling"
    TREE = "doubleBinaryTree"


@dataclass(frozen=True, slots=True)
class Algorithm:
    """A collective algorithm.

    A `flat` algorithm (`one*`) runs over all NPUs at once and not per dimension.
    `window` is the W of `directW`: the number of peers that an NPU serves at a time.
    """

    family: GroupFamily
    flat: bool = False
    window: int | None = None


@dataclass(frozen=True, slots=True)
class StageGroup:
    """The NPUs of one stage: `nodes` of them, `stride` ids apart, running `algorithm`.

    `index` is the group's place in the implementation list. ASTRA-sim also numbers the
    queues of an NPU by it.
    """

    index: int
    nodes: int
    stride: int
    algorithm: Algorithm

    def position(self, npu: int) -> int:
        """The position of an NPU in its group, from 0."""
        return npu // self.stride % self.nodes

    def member(self, npu: int, position: int) -> int:
        """The NPU at `position` of the group that `npu` belongs to."""
        return npu + (position - self.position(npu)) * self.stride


COMMUNICATOR_ENDPOINT_NS = 10
"""The endpoint delay in a communicator, whatever the setting is."""


@dataclass(frozen=True, slots=True)
class Communicator:
    """A listed group of NPUs with a number in its job. It has the interface of a `StageGroup`.

    Its chunks wait in the queues of dimension 0. A message takes the time of the first dimension in
    which the two NPUs differ.
    """

    id: int
    ranks: tuple[int, ...]
    algorithm: Algorithm
    index: int = 0

    @property
    def nodes(self) -> int:
        """Number of NPUs."""
        return len(self.ranks)

    def position(self, npu: int) -> int:
        """The position of an NPU in the list, from 0."""
        return self.ranks.index(npu)

    def member(self, npu: int, position: int) -> int:
        """The NPU at `position` of the list."""
        return self.ranks[position]


AnyGroup = StageGroup | Communicator


def communicator(
    id_: int, ranks: tuple[int, ...], algorithms: tuple[Algorithm, ...]
) -> Communicator:
    """The communicator as ASTRA-sim runs it: a ring, or the only algorithm of a list of one."""
    ring = Algorithm(GroupFamily.RING)
    return Communicator(id_, ranks, algorithms[0] if len(algorithms) == 1 else ring)


def groups(npus: tuple[int, ...], algorithms: tuple[Algorithm, ...]) -> tuple[StageGroup, ...]:
    """The groups of an implementation list, one per algorithm.

    As in ASTRA-sim, a `one*` algorithm spans all NPUs and ends the list. Dimensions beyond the end
    of the list take no part.
    """
    made: list[StageGroup] = []
    stride = 1
    for index, (nodes, algorithm) in enumerate(zip(npus, algorithms, strict=False)):
        if algorithm.flat:
            return (*made, StageGroup(index, prod(npus), 1, algorithm))
        made.append(StageGroup(index, nodes, stride, algorithm))
        stride *= nodes
    return tuple(made)


@cache
def algorithm_of(name: str) -> Algorithm:
    """The algorithm with one of ASTRA-sim's names, e.g. `ring`, `direct2` or `oneRing`.

    Raises:
        BackendSettingError: ASTRA-sim does not know the name.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        raise BackendSettingError(
            f"unknown collective algorithm {name!r}: ASTRA-sim exits; use ring, direct, directN "
            "(N peers at a time), halvingDoubling, doubleBinaryTree, oneRing, oneDirect or "
            "oneHalvingDoubling"
        )
    families = {
        "ring": GroupFamily.RING,
        "halving": GroupFamily.HALVING_DOUBLING,
        "tree": GroupFamily.TREE,
        "direct": GroupFamily.DIRECT,
    }
    family = next(family for part, family in families.items() if match[part])
    window = int(match["window"]) if match["window"] else None
    return Algorithm(family, name.startswith("one"), window)
