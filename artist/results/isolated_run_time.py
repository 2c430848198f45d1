"""How long each job would have run in isolation, on as many GPUs as it asked for, well placed.

    alone_s = iterations x iteration time on the GPUs that the job asked for, as close together as
              an empty cluster allows

It has communication, and neither waiting nor restarts. It is the T_id of finish-time fairness
(Mahajan et al., *Themis*, NSDI 2020, section 3.2) with one difference: there an isolated job has
its share of the cluster, here the GPUs that it asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement
from artist.cluster.tree import ClusterTree
from artist.contract import Rate
from artist.errors import BackendError
from artist.policies.shared.placers import PackPlacer
from artist.workload.job import Job


def isolated_seconds(
    jobs: Sequence[Job], tree: ClusterTree, alone: Callable[[Job, Placement], Rate]
) -> list[float] | None:
    """Seconds of each job. None: the backend does not know one of the placements.

    A run may never ask for the best placement of a job, so a recorded table may lack it.
    """
    closest: dict[int, Placement] = {}
    for gpus in {job.gpus for job in jobs}:
        placement = PackPlacer().place(FreeGpus(tree), gpus)
        assert placement is not None  # the trace was checked: every job fits the cluster
        closest[gpus] = placement
    try:
        return [
            job.iterations * alone(job, closest[job.gpus]).submitted_iteration_s for job in jobs
        ]
    except BackendError:
        return None
