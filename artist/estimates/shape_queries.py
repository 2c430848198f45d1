"""What a backend is asked about a shape: one query, or several of which one counts.

The fabric's system settings decide (docs/decisions/0015-what-astra-sim-is-asked.md). `rings` and
`uneven` decide the dimensions (`dimensions.py`), `collectives` and `hidden_share` the workload
(`workload/gradients.py`), and `groups` how groups of divided jobs are priced (`flat_groups.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from artist.cluster.fabric import Fabric, FabricSystem
from artist.cluster.placement_shape import Shape, gpus_of
from artist.errors import DivisionError
from artist.estimates.dimensions import asked_shapes, dimensions, system_settings
from artist.estimates.group_members import groups_fit
from artist.estimates.query import Dimension, Estimate, LatencyQuery
from artist.workload.divide import axes_of
from artist.workload.division.spread import fitted_spread
from artist.workload.gradients import bucketed, with_hidden_share
from artist.workload.layers import Parallelism, Workload


def as_sent(workload: Workload, system: FabricSystem) -> Workload:
    """The workload as the framework sends it: in buckets, if it has any, and partly hidden."""
    if system.collectives == "bucketed":
        workload = bucketed(workload, system.bucket_mib, system.first_bucket_mib)
    return with_hidden_share(workload, system.hidden_share)


def asked_dimensions(
    workload: Workload, shape: Shape, fabric: Fabric
) -> list[tuple[Dimension, ...]]:
    """The dimensions of each query about a workload on a shape; empty ones for a single GPU."""
    return [
        dimensions_for(workload, asked, fabric, of=shape)
        for asked in asked_shapes(shape, fabric, divided=workload.fits_some_gpus)
    ]


def dimensions_for(
    workload: Workload, asked: Shape, fabric: Fabric, *, of: Shape
) -> tuple[Dimension, ...]:
    """The dimensions of a query about the shape `asked`, which stands for the placement's, `of`.

    Under `rings: one`, a divided job whose groups do not fit its machines is also one ring.
    """
    grouped = in_groups(workload, gpus_of(asked))
    dims = dimensions(asked, fabric, of=of, in_groups=grouped)
    if grouped and fabric.system.rings == "one" and not groups_fit(workload, dims):
        return dimensions(asked, fabric, of=of)
    return dims


def query(workload: Workload, dims: tuple[Dimension, ...], fabric: Fabric) -> LatencyQuery:
    """A query about dimensions of a fabric. The workload has whole microseconds."""
    gpus = math.prod(dimension.npus for dimension in dims)
    system = system_settings(dims, fabric, in_groups=in_groups(workload, gpus))
    return LatencyQuery(workload, dims, system, flat_groups=flat_groups(workload, fabric.system))


def in_groups(workload: Workload, gpus: int) -> bool:
    """Whether a workload's collectives are among groups, not among all GPUs of the job."""
    axes = axes_of(workload)
    if axes.of_replica > 1 or not axes.implied:
        return axes.of_replica > 1 or axes.expert > 1
    return axes.data not in (None, gpus) or fitted_spread(axes, gpus) > 1


def flat_groups(workload: Workload, system: FabricSystem) -> bool:
    """Whether the groups of a divided workload are priced as flat rings."""
    divided = workload.parallelism in (Parallelism.LAYERWISE, Parallelism.STAGED)
    return divided and system.groups == "flat"


def takes_fastest(system: FabricSystem) -> bool:
    """Whether the fastest of several shapes counts: none spreads less than the placement."""
    return system.uneven == "wider"


@dataclass(frozen=True, slots=True)
class CountedAnswer:
    """The answer that counts, its index among the queries, and the indices of refused queries."""

    estimate: Estimate
    index: int
    refused: tuple[int, ...] = ()


def counted(asks: Sequence[Callable[[], Estimate]], *, fastest: bool) -> CountedAnswer:
    """The answer with the longest iteration, or the shortest one with `fastest` (`takes_fastest`).

    Among equals the first counts. Shapes that a divided model does not fit are left out.

    Raises:
        DivisionError: the model fits no shape; this is the first shape's error.
        BackendError: a query has no answer for another reason.
    """
    answers: list[tuple[Estimate, int]] = []
    refused: dict[int, DivisionError] = {}
    for index, ask in enumerate(asks):
        try:
            answers.append((ask(), index))
        except DivisionError as cause:
            refused[index] = cause
    if not answers:
        raise next(iter(refused.values()))
    sign = -1 if fastest else 1
    estimate, index = max(answers, key=lambda pair: (sign * pair[0].finish_ns, -pair[1]))
    return CountedAnswer(estimate, index, tuple(refused))
