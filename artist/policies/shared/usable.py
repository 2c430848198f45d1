"""The free GPUs that a job can use: those that machines can feed, in whole tensor groups."""

from __future__ import annotations

from collections.abc import Callable

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.host_resources import Shortage
from artist.cluster.placement import Placement
from artist.policies.shared.tensor_groups import for_groups
from artist.workload.job import Job


def usable_by(free: FreeGpus, job: Job) -> FreeGpus:
    """The free GPUs without those that a job cannot use; a copy if there are any."""
    return for_groups(free.fed(job), job)


def lacking(
    free: FreeGpus, job: Job, place: Callable[[FreeGpus], Placement | None]
) -> Shortage | None:
    """What machines lack if it alone keeps a job from GPUs that `place` would give it."""
    if free.hosts is None:
        return None
    placement = place(free.unfed())
    return None if placement is None else free.hosts.shortage(placement, job)
