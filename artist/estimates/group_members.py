"""Which GPUs take part in the collectives of a divided job: groups, cut out of dimensions."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from artist.errors import DivisionError
from artist.estimates.query import Dimension, SystemSettings
from artist.units import counted
from artist.workload.division.spread import fitted_spread
from artist.workload.division.staged import Axes
from artist.workload.iteration_graph import nodes
from artist.workload.layers import Degrees, Scope, Workload


@dataclass(frozen=True, slots=True)
class Members:
    """The dimensions of a group. `indices` are the query's dimensions that they are cut out of.

    `strides` are the ranks from one member to the next, in each dimension. They are empty for a
    STAGED workload, whose `Ranks` has them.
    """

    dimensions: tuple[Dimension, ...]
    indices: tuple[int, ...]
    strides: tuple[int, ...] = ()

    @property
    def axes(self) -> tuple[tuple[int, int, int], ...]:
        """(dimension, stride in ranks, GPUs) of each part of the group."""
        npus = (dimension.npus for dimension in self.dimensions)
        return tuple(zip(self.indices, self.strides, npus, strict=True))

    def system(self, settings: SystemSettings) -> SystemSettings:
        """The query's settings with only the algorithms of these dimensions."""

        def chosen(names: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(names[index] for index in self.indices if index < len(names))

        return replace(
            settings,
            all_reduce=chosen(settings.all_reduce),
            all_gather=chosen(settings.all_gather),
            reduce_scatter=chosen(settings.reduce_scatter),
            all_to_all=chosen(settings.all_to_all),
        )


def members(dims: tuple[Dimension, ...], degrees: Degrees, scope: Scope) -> Members:
    """The members of one group of a scope, on a query's dimensions.

    Raises:
        DivisionError: the job's GPUs do not divide into such groups.
    """
    stride, size = extent(math.prod(dim.npus for dim in dims), degrees, scope)
    parts: list[Dimension] = []
    indices: list[int] = []
    strides: list[int] = []
    inside = 1
    # `stride` and `size` are what remains of the group's stride and size beyond the dimensions seen
    # so far: first the stride is used up, then the members are counted.
    for index, dim in enumerate(dims):
        skipped = math.gcd(stride, dim.npus)
        stride //= skipped
        left = dim.npus // skipped
        taken = math.gcd(size, left) if stride == 1 else 1
        size //= taken
        if left > taken and (stride > 1 or size > 1):
            break  # the group goes on in the next dimension without filling this one
        if taken > 1:
            parts.append(replace(dim, npus=taken))
            indices.append(index)
            strides.append(inside * skipped)
        inside *= dim.npus
    if stride != 1 or size != 1:
        sizes = " x ".join(str(dim.npus) for dim in dims)
        raise DivisionError(
            f"a {scope} group does not fit {sizes} GPUs with {_degrees_text(degrees)}; place the "
            "job on machines alike, or choose degrees that divide their GPUs"
        )
    return Members(tuple(parts), tuple(indices), tuple(strides))


def shares_of_copies(dims: tuple[Dimension, ...], copies: int) -> tuple[float, ...]:
    """The share of an all-to-all's bytes that crosses each dimension of a group of experts.

    The share is 1 inside machines. Outside, a machine gets one copy of a token for all its experts.
    If the `copies` experts of a token are anywhere on m machines, m (1 - (1 - 1/m)^copies) of the
    machines get one, on average.
    """
    levels = [dim.level for dim in dims]
    # A query that was built by hand names no levels. Its innermost dimension is a machine.
    inside = levels.index("machine") + 1 if "machine" in levels else levels[:1].count("")
    machines = math.prod(dim.npus for dim in dims[inside:])
    share = machines / copies * (1 - (1 - 1 / machines) ** copies) if inside else 1.0
    return (1.0,) * inside + (share,) * (len(dims) - inside)


def groups_fit(workload: Workload, dims: tuple[Dimension, ...]) -> bool:
    """Whether the groups of all collectives of a workload can be cut out of these dimensions.

    The groups of a STAGED workload always can (`rank_groups.py`).
    """
    if workload.staged is not None:
        return True
    try:
        for scope in {node.scope for node in nodes(workload) if node.collective is not None}:
            members(dims, workload.degrees, scope)
    except DivisionError:
        return False
    return True


def extent(gpus: int, degrees: Degrees, scope: Scope) -> tuple[int, int]:
    """Stride (GPUs from one member to the next) and number of members of a scope's group.

    Raises:
        DivisionError: the GPUs do not divide among the degrees.
    """
    model = degrees.tensor * degrees.stages
    per_stage = gpus // degrees.stages
    if gpus % model:
        raise DivisionError(
            f"{counted(gpus, 'GPU')} cannot be divided into {_degrees_text(degrees)}; give the job "
            f"a multiple of {model} GPUs or the model other degrees"
        )
    experts = fitted_spread(Axes(expert=degrees.experts, implied=True), per_stage)
    match scope:
        case Scope.ALL:
            return 1, gpus
        case Scope.TENSOR:
            return 1, degrees.tensor
        case Scope.CONTEXT:  # only STAGED workloads divide sequences
            return 1, 1
        case Scope.DATA:
            return degrees.tensor, gpus // model
        case Scope.STAGE:
            return per_stage, min(2, degrees.stages)
        case Scope.EXPERT:
            return 1, experts
        case Scope.REPLICA:
            return experts, per_stage // experts


def _degrees_text(degrees: Degrees) -> str:
    return f"tensor={degrees.tensor}, stages={degrees.stages}, experts={degrees.experts}"
