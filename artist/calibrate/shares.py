"""The communication share of an iteration, as a function of the two scales.

`simulated` is what a run would use: compute in whole microseconds, as ASTRA-sim
reads them, answered by the backend. `exact` keeps fractions; it plays the
iteration with the backend's time of each collective, and is smooth enough to solve for.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from artist.cluster.fabric import Fabric
from artist.estimates.calibration import ModelCalibration
from artist.estimates.layer_wise import CollectiveTimes, LayerwiseBackend
from artist.estimates.query import LatencyBackend, LatencyQuery
from artist.estimates.query_from_text import on_placement
from artist.workload.graph import Node, nodes, schedule
from artist.workload.layers import Workload, quantised

NS_PER_US = 1000.0


@dataclass(frozen=True, slots=True)
class Scales:
    """What is fitted: factors on compute times and on the bytes of collectives."""

    compute: float
    comm: float = 1.0

    def apply(self, workload: Workload) -> Workload:
        """The scaled workload."""
        row = ModelCalibration(compute_scale=self.compute, comm_scale=self.comm)
        return row.apply(workload)


class ShareModel:
    """Shares of one model on one placement of a fabric."""

    def __init__(
        self, workload: Workload, placement: str, fabric: Fabric, backend: LatencyBackend
    ) -> None:
        self._workload = workload
        self._placement = placement
        self._fabric = fabric
        self._backend = LayerwiseBackend(backend)
        self._probe = backend
        self._times: dict[float, CollectiveTimes] = {}

    def simulated(self, scales: Scales) -> float:
        """Exposed communication over compute, as a run will see it."""
        return self._backend.estimate(self._query(scales)).comm_ratio

    def exact(self, scales: Scales) -> float:
        """The same with fractions of a microsecond."""
        return self._played(scales.apply(self._workload), scales)

    def rounded(self, scales: Scales) -> float:
        """`simulated` without asking the backend: equal where all NPUs do the same."""
        return self._played(quantised(scales.apply(self._workload)), scales)

    def compute_us(self, scales: Scales) -> float:
        """Compute time of an iteration, exact."""
        found = nodes(scales.apply(self._workload))
        return sum(node.compute_us for node in found)

    def _played(self, workload: Workload, scales: Scales) -> float:
        found = nodes(workload)
        times = self._collective_times(scales.comm)

        def duration_ns(node: Node) -> float:
            if node.collective is None:
                return node.compute_us * NS_PER_US or 1.0
            return times.of(node).finish_ns

        finish_ns = max(span.end for span in schedule(found, duration_ns))
        compute_ns = sum(duration_ns(node) for node in found if node.collective is None)
        return finish_ns / compute_ns - 1

    def _query(self, scales: Scales) -> LatencyQuery:
        scaled = scales.apply(self._workload)
        return on_placement(scaled, self._placement, self._fabric, {}).query

    def _collective_times(self, comm: float) -> CollectiveTimes:
        """Times of collectives do not depend on compute, so they are asked for once."""
        if comm not in self._times:
            self._times[comm] = CollectiveTimes(self._probe, self._query(Scales(1.0, comm)))
        return self._times[comm]


def digest(text: str) -> str:
    """SHA-256 of a text, as manifests write it."""
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()
