"""What a data-parallel job does on a link of its own: Down, then Up, in every iteration.

Each worker has a NIC as fast as the link, and the workers form a ring. Latency is left out, as
circles leave it out. The backend says how long an iteration takes and when it sends:

    Up     the time in which anything is sent, gathered at the end of the iteration
    Down   the rest of the iteration
    demand bytes that a worker sends / Up

Real iterations send in several bursts. Runs gather them too (`artist.network.sharing`).
"""

from __future__ import annotations

from dataclasses import dataclass

from artist.estimates.latency_service import answer
from artist.estimates.query import (
    Dimension,
    LatencyBackend,
    LatencyQuery,
    SystemSettings,
    Topology,
)
from artist.network.demand.curves import busy_ns
from artist.units import TICKS_PER_S
from artist.workload.layers import Workload, quantised


@dataclass(frozen=True, slots=True)
class DownAndUp:
    """One iteration, alone. A job of one worker has no Up phase."""

    iteration_s: float
    up_s: float
    bytes_per_s: float


def down_and_up(
    workload: Workload, workers: int, link_gib_per_s: float, backend: LatencyBackend
) -> DownAndUp:
    """Down and Up of a workload on so many workers over a link.

    Raises:
        BackendError: the backend cannot answer.
    """
    network = (Dimension(Topology.SWITCH, workers, link_gib_per_s, 0.0),) if workers > 1 else ()
    rings = ("ring",) * len(network)
    system = SystemSettings(rings, rings, rings, rings)
    estimate = answer(backend, LatencyQuery(quantised(workload), network, system), profile=True)
    up_ns = busy_ns(estimate.profile or (), {0})
    sent_bytes = sum(estimate.bytes_per_dimension or ())
    rate = sent_bytes * TICKS_PER_S / up_ns if up_ns else 0.0
    return DownAndUp(estimate.finish_ns / TICKS_PER_S, up_ns / TICKS_PER_S, rate)
