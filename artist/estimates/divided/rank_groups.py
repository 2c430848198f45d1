"""Which GPUs of a placement form the groups of a divided job: from axes to network dimensions.

The ranks of a job are numbered axis by axis, innermost first. They lie on the GPUs of a placement
in this order, innermost dimension first. So dimensions and axes both factor the number of GPUs.
Both are cut into **parts** that each lie on one axis and in one dimension:

    8 x 4 GPUs, tensor=4, pipeline=2, data=4     (4 tensor, 8) (2 pipeline, 8) (4 data, 4)

A group consists of the GPUs that differ only in the parts of its axes. Its dimensions have the
sizes of these parts: 4 GPUs of a Switch of 8 are a Switch of 4.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import combinations, permutations
from typing import NamedTuple

from artist.errors import DivisionError
from artist.estimates.query import Dimension, Topology
from artist.workload.division.staged import INNERMOST_FIRST, Axes, Axis, sizes_of
from artist.workload.layers import Scope


class Part(NamedTuple):
    """`size` neighbours along an axis, `stride` GPUs apart in a dimension of the query."""

    dimension: int
    stride: int
    axis: Axis
    size: int


class Ranks:
    """The ranks of a job on the dimensions of a query, in one order.

    Raises:
        DivisionError: the axes do not fit the number of GPUs, or cut a dimension unevenly.
    """

    def __init__(
        self, dimensions: tuple[Dimension, ...], axes: Axes, order: Sequence[Axis]
    ) -> None:
        self.dimensions, self.axes, self.order = dimensions, axes, tuple(order)
        self.sizes = sizes_of(axes, math.prod(dim.npus for dim in dimensions))
        self.parts = _parts(dimensions, [(axis, self.sizes[axis]) for axis in order])

    def text(self) -> str:
        """The order of the axes that have several GPUs, such as `tensor-data-pipeline`."""
        return "-".join(dict.fromkeys(part.axis for part in self.parts))

    def key(self) -> tuple[object, ...]:
        """What all costs depend on: two orders with equal keys cost the same."""
        groups = tuple(self.group(scope) for scope in _SCOPES)
        stages = self.axes.pipeline
        return (groups, tuple(self.route(x, (x + 1) % stages) for x in range(stages)))

    def group(self, scope: Scope) -> tuple[tuple[int, int], ...]:
        """(dimension, number of members in it) of a scope's group, innermost first."""
        counts: dict[int, int] = {}
        for part in self.members(scope):
            counts[part.dimension] = counts.get(part.dimension, 1) * part.size
        return tuple((dimension, size) for dimension, size in counts.items() if size > 1)

    def group_dimensions(self, scope: Scope) -> tuple[Dimension, ...]:
        """The network of a scope's group."""
        return tuple(
            replace(self.dimensions[index], npus=size) for index, size in self.group(scope)
        )

    def route(self, sender: int, receiver: int) -> tuple[int, int]:
        """(dimension, hops) of a message between peers in two stages.

        A message is charged to the outermost dimension in which the peers differ. ASTRA-sim charges
        it to the innermost one, which is the same where they differ in only one.
        """
        route = (0, 0)
        for part in self._pipeline():
            apart = receiver % part.size - sender % part.size
            sender, receiver = sender // part.size, receiver // part.size
            if apart:
                dimension = self.dimensions[part.dimension]
                distance = apart * part.stride % dimension.npus
                route = part.dimension, hops(dimension, distance)
        return route

    def peers(self, scope: Scope, dimension: int) -> tuple[int, int]:
        """(stride in ranks, GPUs) of a scope's group in a dimension.

        If the group has parts that are not adjacent, these are of the outermost one.
        """
        stride, size = 1, 1
        for part in self.members(scope):
            if part.dimension == dimension and part.size > 1:
                adjacent = part.stride == stride * size
                stride = stride if adjacent else part.stride
                size = size * part.size if adjacent else part.size
        return stride * self._ranks_inside(dimension), size

    def stages(self, dimension: int) -> tuple[int, int]:
        """(stride in ranks, GPUs) of the outermost part of a pipeline in a dimension."""
        part = [part for part in self._pipeline() if part.dimension == dimension][-1]
        return part.stride * self._ranks_inside(dimension), part.size

    def _ranks_inside(self, dimension: int) -> int:
        return math.prod(dim.npus for dim in self.dimensions[:dimension])

    def _pipeline(self) -> list[Part]:
        return [part for part in self.parts if part.axis is Axis.PIPELINE]

    def members(self, scope: Scope) -> list[Part]:
        """The parts of a scope's group, innermost first."""
        match scope:
            case Scope.TENSOR:
                axes = {Axis.TENSOR}
            case Scope.CONTEXT:
                axes = {Axis.CONTEXT}
            case Scope.DATA:
                # Gradients are summed over replicas, and over GPUs that share sequences.
                axes = {Axis.DATA, Axis.CONTEXT}
            case _:
                return self._experts(scope)
        return [part for part in self.parts if part.axis in axes]

    def _experts(self, scope: Scope) -> list[Part]:
        """EXPERT: the innermost `expert` GPUs of a stage. REPLICA: equal places in such groups."""
        left = self.axes.expert
        members = []
        for part in self.parts:
            if part.axis is Axis.PIPELINE:
                continue
            taken = math.gcd(left, part.size)
            if taken < part.size and left > taken:
                raise DivisionError(
                    f"expert={left} does not fit a {part.axis} axis of {part.size} GPUs; choose "
                    "degrees that divide each other"
                )
            left //= taken
            if scope is Scope.EXPERT:
                members.append(part._replace(size=taken))
            else:
                stride = part.stride * taken
                members.append(part._replace(stride=stride, size=part.size // taken))
        return members


_SCOPES = (Scope.TENSOR, Scope.CONTEXT, Scope.DATA, Scope.EXPERT, Scope.REPLICA)


def fitting_orders(dimensions: tuple[Dimension, ...], axes: Axes) -> list[Ranks]:
    """The different orders of ranks in which the axes fit.

    If they fit in none, neighbouring dimensions count as one with the links of the outer one: as
    few as it takes. So the GPUs count as farther apart than they are.

    Raises:
        DivisionError: the axes do not fit the number of GPUs.
    """
    refused: DivisionError | None = None
    for fewer in range(len(dimensions)):
        found = list[Ranks]()
        for inner in combinations(range(len(dimensions) - 1), fewer):
            try:
                found += orders(_joined(dimensions, inner), axes)
            except DivisionError as cause:
                refused = refused or cause
        if found:
            return found
    assert refused is not None
    raise refused


def _joined(dimensions: Sequence[Dimension], inner: Collection[int]) -> tuple[Dimension, ...]:
    """The dimensions, where some each count as a part of the next one."""
    joined, npus = list[Dimension](), 1
    for index, dimension in enumerate(dimensions):
        npus *= dimension.npus
        joined.append(replace(dimension, npus=1 if index in inner else npus))
        npus = npus if index in inner else 1
    return tuple(joined)


def orders(dimensions: tuple[Dimension, ...], axes: Axes) -> list[Ranks]:
    """The different orders of ranks: the one given, or all with `tensor` innermost.

    Tensor groups send several times per block and wait each time, so no framework lets them leave a
    machine in which they fit (arXiv:2104.04473, takeaway 1).

    Raises:
        DivisionError: the axes fit in no order.
    """
    if axes.order:
        rest = [axis for axis in INNERMOST_FIRST if axis not in axes.order]
        return [Ranks(dimensions, axes, (*axes.order, *rest))]
    found: dict[object, Ranks] = {}
    refused: DivisionError | None = None
    first, *others = INNERMOST_FIRST
    for order in permutations(others):
        try:
            ranks = Ranks(dimensions, axes, (first, *order))
            found.setdefault(ranks.key(), ranks)
        except DivisionError as cause:
            refused = refused or cause
    if not found:
        assert refused is not None
        raise refused
    return list(found.values())


def hops(dimension: Dimension, distance: int) -> int:
    """Hops between two GPUs of a dimension that are `distance` positions apart."""
    match dimension.topology:
        case Topology.FULLY_CONNECTED:
            return 1
        case Topology.SWITCH:
            return 2
        case Topology.RING:
            return min(distance, dimension.npus - distance)


def _parts(dimensions: Sequence[Dimension], axes: Sequence[tuple[Axis, int]]) -> tuple[Part, ...]:
    """Cut the dimensions along the axes, innermost first. An axis may span several dimensions."""
    parts: list[Part] = []
    left = [(axis, size) for axis, size in axes if size > 1]
    for index, dimension in enumerate(dimensions):
        stride, open_ = 1, dimension.npus
        while open_ > 1:
            axis, size = left[0]
            taken = math.gcd(size, open_)
            if taken == 1:
                sizes = " x ".join(str(dim.npus) for dim in dimensions)
                raise DivisionError(
                    f"a {axis} group of {dict(axes)[axis]} does not fit {sizes} GPUs; place the "
                    "job on machines alike, or choose axes that divide their GPUs"
                )
            parts.append(Part(index, stride, axis, taken))
            stride, open_ = stride * taken, open_ // taken
            left = left[1:] if taken == size else [(axis, size // taken), *left[1:]]
    return tuple(parts)
