"""The communication share of an iteration as a function of the compute and communication scale.

    share = constant + exposed communication / compute of the scaled iteration

There are three ways to compute it:

    simulated   the backend's estimate for the whole iteration, as a run uses it: ASTRA-sim reads
                compute times in whole microseconds
    rounded     the same without a query for the iteration: it is played with the backend's time of
                each collective
    exact       like `rounded`, but with fractions of a microsecond, so it is smooth in the scales
"""

from __future__ import annotations

from dataclasses import dataclass

from artist.cluster.fabric import Fabric
from artist.estimates.calibration import ModelCalibration
from artist.estimates.divided.layer_wise import CollectiveTimes, LayerwiseBackend
from artist.estimates.query import LatencyBackend
from artist.estimates.query_from_text import Question, on_placement
from artist.estimates.shape_queries import as_sent
from artist.workload.divide import fitted
from artist.workload.iteration_graph import IterationNode, nodes, schedule
from artist.workload.layers import Workload, quantised

NS_PER_US = 1000.0


@dataclass(frozen=True, slots=True)
class Scales:
    """The fitted numbers: factors on compute times and on the bytes of collectives, and a constant.

    `constant` is exposed on every placement of more than one GPU, as a fraction of compute.
    """

    compute: float
    comm: float = 1.0
    constant: float = 0.0

    @classmethod
    def of(cls, row: ModelCalibration) -> Scales:
        """The numbers of a calibration's row."""
        return cls(row.compute_scale, row.comm_scale, row.constant_share)

    def apply(self, workload: Workload) -> Workload:
        """The workload with both factors applied."""
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
        self._collective_backend = backend
        self._times: dict[float, list[CollectiveTimes]] = {}

    def simulated(self, scales: Scales) -> float:
        """The share as in a run: the backend's estimate for the iteration."""
        return scales.constant + self._question(scales).answer(self._backend).estimate.comm_ratio

    def exact(self, scales: Scales) -> float:
        """The share with fractions of a microsecond, from the times of the collectives."""
        return self._played(self._sent(scales), scales)

    def rounded(self, scales: Scales) -> float:
        """The share in whole microseconds, from the times of the collectives.

        It equals `simulated` if all NPUs do the same, and is much faster.
        """
        return self._played(quantised(self._sent(scales)), scales)

    def compute_us(self, scales: Scales) -> float:
        """The compute time of an iteration with fractions of a microsecond."""
        return sum(node.compute_us for node in nodes(scales.apply(self._workload)))

    def _played(self, workload: Workload, scales: Scales) -> float:
        """Play an iteration with the times of its collectives; the largest share of all queries."""
        played = [self._played_with(workload, times) for times in self._times_at(scales.comm)]
        return scales.constant + max(played)

    def _played_with(self, workload: Workload, times: CollectiveTimes) -> float:
        """The share for one query about the placement."""
        graph = nodes(fitted(workload, times.query.gpus))

        def duration_ns(node: IterationNode) -> float:
            if node.collective is None:
                return node.compute_us * NS_PER_US or 1.0  # 1 ns without compute, as in a run
            return times.of(node).finish_ns

        finish_ns = max(span.end for span in schedule(graph, duration_ns))
        compute_ns = sum(duration_ns(node) for node in graph if node.collective is None)
        return finish_ns / compute_ns - 1

    def _sent(self, scales: Scales) -> Workload:
        return as_sent(scales.apply(self._workload), self._fabric.system)

    def _question(self, scales: Scales) -> Question:
        return on_placement(scales.apply(self._workload), self._placement, self._fabric, {})

    def _times_at(self, comm: float) -> list[CollectiveTimes]:
        """The times of the collectives, for each query about the placement.

        They do not depend on the compute scale, so they are kept by communication scale.
        """
        if comm not in self._times:
            question = self._question(Scales(1.0, comm))
            self._times[comm] = [
                CollectiveTimes(self._collective_backend, labelled.query)
                for labelled in question.asked
            ]
        return self._times[comm]
