"""What a backend is asked about a shape: one query, or several of which the slowest counts.

The fabric's system settings decide it (docs/decisions/0015-what-astra-sim-is-asked.md): `rings`
and `uneven` the dimensions (`dimensions.py`), `collectives` the workload (`workload/buckets.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from artist.cluster.fabric import Fabric, FabricSystem
from artist.cluster.shape import Shape
from artist.errors import BackendSettingError
from artist.estimates.dimensions import asked_shapes, dimensions, system_settings
from artist.estimates.query import Dimension, Estimate, LatencyQuery
from artist.workload.buckets import bucketed
from artist.workload.layers import Workload


def as_sent(workload: Workload, system: FabricSystem) -> Workload:
    """The workload with its collectives as the framework sends them."""
    if system.collectives == "per-layer":
        return workload
    return bucketed(workload, system.bucket_mib, system.first_bucket_mib)


def asked_dimensions(shape: Shape, fabric: Fabric) -> list[tuple[Dimension, ...]]:
    """The dimensions of each query about a shape; empty ones for a single GPU."""
    return [dimensions(asked, fabric) for asked in asked_shapes(shape, fabric)]


def query(workload: Workload, dims: tuple[Dimension, ...], fabric: Fabric) -> LatencyQuery:
    """A query about dimensions of a fabric. The workload has whole microseconds."""
    return LatencyQuery(workload, dims, system_settings(dims, fabric))


def slowest(asks: Sequence[Callable[[], Estimate]]) -> tuple[Estimate, int]:
    """The answer that finishes last, and its index. Among equals the first.

    A divided model may not fit one of two neighbours of an uneven shape. Then the other counts.

    Raises:
        BackendError: no query has an answer; the first one's error.
    """
    answers: list[tuple[Estimate, int]] = []
    refused: list[BackendSettingError] = []
    for index, ask in enumerate(asks):
        try:
            answers.append((ask(), index))
        except BackendSettingError as cause:
            refused.append(cause)
    if not answers:
        raise refused[0]
    return max(answers, key=lambda pair: (pair[0].finish_ns, -pair[1]))
