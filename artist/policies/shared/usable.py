"""The free GPUs that a job can use: those that machines can feed, in whole tensor groups."""

from __future__ import annotations

from collections.abc import Callable

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.gpu_shares import SharedGpus
from artist.cluster.host_resources import GPU_MEMORY, MIG, Shortage
from artist.cluster.placement import Placement
from artist.policies.shared.tensor_groups import for_groups
from artist.workload.job import Job


def usable_by(free: FreeGpus, job: Job) -> FreeGpus:
    """The free GPUs without those that a job cannot use; a copy if there are any."""
    return for_groups(free.fed(job), job)


def lacking(
    free: FreeGpus, job: Job, place: Callable[[FreeGpus], Placement | None]
) -> Shortage | None:
    """What machines or GPUs lack if it alone keeps a job from GPUs that `place` would give it."""
    if free.hosts is None:
        return None
    placement = place(free.unfed())
    if placement is None:
        return None
    lacks = free.hosts.shortage(placement, job)
    if lacks is None and isinstance(free, SharedGpus) and job.is_share:
        left = free.shares.most_memory(placement.leaves[0], job.gpu_milli)
        if job.mig or left is None:
            return Shortage(MIG, 0, 1)
        return Shortage(GPU_MEMORY, left, job.gpu_memory_mib)
    return lacks
