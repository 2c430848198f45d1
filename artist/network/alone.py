"""Each job as if it were alone on the network: its estimate decides.

    iteration_s = compute_s x (1 + r),  r = exposed communication / compute

(Dally, section IV-C: compute time comes from the trace, only the network's share from the
backend). On other than the requested number of GPUs an iteration takes as long, and is
worth GPUs / requested of one.

Models of contention between jobs are other implementations of `artist.contract.RateFunction`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from artist.cluster.placement import Placement
from artist.cluster.shape import Shape, shape
from artist.cluster.tree import ClusterTree
from artist.contract import JobView, Rate
from artist.estimates.query import Estimate
from artist.units import Tick
from artist.workload.job import Job


class AloneRates:
    """A rate function. `estimate(model, shape)` gives the communication ratio of a placement."""

    def __init__(self, tree: ClusterTree, estimate: Callable[[str, Shape], Estimate]) -> None:
        self._tree = tree
        self._estimate = estimate

    def __call__(
        self, now: Tick, running: Mapping[int, JobView], changed: Sequence[JobView]
    ) -> Mapping[int, Rate]:
        """Rates of the changed jobs that run."""
        return {
            view.handle: self.alone(view.job, view.placement)
            for view in changed
            if view.placement is not None
        }

    def alone(self, job: Job, placement: Placement) -> Rate:
        """compute_s x (1 + communication ratio); see `RateFunction.alone`."""
        estimate = self._estimate(job.model, shape(self._tree, placement))
        iteration_s = job.compute_s * (1.0 + estimate.comm_ratio)
        return Rate(iteration_s, placement.gpus / job.gpus, estimate.source, iteration_s)
