"""A rate function for the engine, from recorded speeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from artist.cluster.placement import Placement
from artist.cluster.tree import ClusterTree
from artist.contract import NO_SHARED_LINKS, JobView, Rate
from artist.units import Tick
from artist.workload.job import Job
from validation.original.speeds import RecordedSpeeds, network_of


class RecordedRates:
    """Each job runs as if it were alone, at the original's speed for its placement."""

    links = NO_SHARED_LINKS

    def __init__(self, tree: ClusterTree, speeds: RecordedSpeeds) -> None:
        self._tree = tree
        self._speeds = speeds
        self._known: dict[tuple[str, Placement], float] = {}

    def __call__(
        self, now: Tick, running: Mapping[int, JobView], changed: Sequence[JobView]
    ) -> Mapping[int, Rate]:
        """Rates of those changed jobs that run."""
        return {
            view.handle: self.alone(view.job, view.placement)
            for view in changed
            if view.placement is not None
        }

    def alone(self, job: Job, placement: Placement) -> Rate:
        """The rate of a job: compute_s / speed. The original gives every job all its GPUs."""
        key = (job.model, placement)
        if key not in self._known:
            self._known[key] = self._speeds.speed(job.model, network_of(self._tree, placement))
        iteration_s = job.compute_s / self._known[key]
        return Rate(iteration_s, 1.0, "recorded", iteration_s)
