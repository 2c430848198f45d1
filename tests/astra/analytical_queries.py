"""Small queries whose answers a person can work out.

The default network moves one byte per nanosecond and has 10 ns of latency; an
NPU needs 5 ns per bundle and reduces a byte in 3 ns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from artist.estimates.query import Dimension, LatencyQuery, SystemSettings, Topology
from artist.workload.layers import Collective, Layer, Parallelism, Phase, Workload

BYTE_PER_NS = 1e9 / 2**30
"""GiB/s that are one byte per nanosecond, exactly."""

AR, RS = Collective.ALL_REDUCE, Collective.REDUCE_SCATTER
AG, A2A = Collective.ALL_GATHER, Collective.ALL_TO_ALL
RING, SWITCH, FULL = Topology.RING, Topology.SWITCH, Topology.FULLY_CONNECTED


def micro(*collectives: tuple[Collective, int]) -> Workload:
    """A workload of collectives alone."""
    layers = [Layer(f"l{i}", Phase(1), Phase(1), Phase(1, *c)) for i, c in enumerate(collectives)]
    return Workload("micro", Parallelism.MICRO, tuple(layers))


def data(*layers: tuple[float, float, float, int]) -> Workload:
    """Layers of (forward, input gradient, weight gradient) in us and the all-reduced bytes."""
    made = [
        Layer(f"l{i}", Phase(forward), Phase(ig), Phase(wg, AR, size))
        for i, (forward, ig, wg, size) in enumerate(layers)
    ]
    return Workload("data", Parallelism.DATA, tuple(made))


def dims(*shapes: tuple[Topology, int], latency_ns: float = 10.0) -> tuple[Dimension, ...]:
    """Dimensions of one byte per nanosecond."""
    return tuple(Dimension(kind, npus, BYTE_PER_NS, latency_ns) for kind, npus in shapes)


def query(
    workload: Workload,
    dimensions: tuple[Dimension, ...],
    algorithms: str | Sequence[str] = "ring",
    passes: int = 1,
    **settings: Any,
) -> LatencyQuery:
    """A query of one split with the same algorithms for all collectives."""
    names = (algorithms,) * len(dimensions) if isinstance(algorithms, str) else tuple(algorithms)
    lists = dict.fromkeys(("all_reduce", "all_gather", "reduce_scatter", "all_to_all"), names)
    defaults: dict[str, Any] = {
        "preferred_dataset_splits": 1,
        "endpoint_delay_ns": 5,
        "local_mem_bandwidth_gb_per_s": 1.0,
    }
    system = SystemSettings(**{**lists, **defaults, **settings})
    return LatencyQuery(workload, dimensions, system, passes)
