"""The one source of speed: a function from running jobs to rates.

It is asked once per instant, with the jobs whose placement, phase or
membership changed, and may answer for any running job. Models of contention between
jobs are other implementations of `RateFunction`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from artist.cluster.placement import Placement, signature
from artist.cluster.tree import ClusterTree
from artist.contract import JobView
from artist.engine.progress import Rate
from artist.estimates.query import Estimate
from artist.units import Tick
from artist.workload.job import Job


class RateFunction(Protocol):
    """How fast jobs run."""

    def __call__(
        self, now: Tick, running: Mapping[int, JobView], changed: Sequence[JobView]
    ) -> Mapping[int, Rate]:
        """Rates by job order.

        `changed` holds jobs that started, moved, asked to be asked again, were preempted or
        finished at this instant. Every running one among the first three kinds must be answered.
        """
        ...

    def alone_iteration_s(self, job: Job, placement: Placement) -> float:
        """What one iteration would take on these GPUs without other jobs: a policy may ask."""
        ...


class AloneRates:
    """Each job as if it were alone on the network: its estimate decides.

    `estimate(model, signature)` gives a placement's communication ratio r; one iteration
    takes `compute_s * (1 + r)` (Dally, section IV-C: compute time comes from the
    trace, only the network's share from the backend). On other than the requested
    number of GPUs an iteration keeps its time and is worth GPUs / requested.
    """

    def __init__(self, tree: ClusterTree, estimate: Callable[[str, str], Estimate]) -> None:
        self._tree = tree
        self._estimate = estimate

    def __call__(
        self, now: Tick, running: Mapping[int, JobView], changed: Sequence[JobView]
    ) -> Mapping[int, Rate]:
        """Rates of the changed jobs that run."""
        return {view.order: self._rate(view) for view in changed if view.order in running}

    def alone_iteration_s(self, job: Job, placement: Placement) -> float:
        """compute_s x (1 + communication ratio)."""
        estimate = self._estimate(job.model, signature(self._tree, placement))
        return job.compute_s * (1.0 + estimate.comm_ratio)

    def _rate(self, view: JobView) -> Rate:
        assert view.placement is not None  # running jobs have GPUs
        job = view.job
        estimate = self._estimate(job.model, signature(self._tree, view.placement))
        iteration_s = job.compute_s * (1.0 + estimate.comm_ratio)
        share = view.placement.gpus / job.gpus
        return Rate(iteration_s, share / iteration_s, estimate.source, iteration_s)
