"""The free GPUs that a job can use: on machines with enough CPU cores and memory, in tensor groups.

The GPUs of a tensor group exchange activations several times per block (arXiv:2104.04473, takeaway
1), so a group stays in one machine. A job with groups of t GPUs gets t, 2t, ... GPUs of a machine;
a machine that is smaller than a group is taken whole. Pipeline stages and replicas may be anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.gpu_shares import SharedGpus
from artist.cluster.host_resources import GPU_MEMORY, MIG, Shortage, of_kind
from artist.cluster.placement import Placement
from artist.cluster.tree import ClusterTree
from artist.contract import ClusterView, Decision, Migrate, Preempt, Start
from artist.policies.shared.packing import pack_in_unit
from artist.workload.job import Job


def usable_by(free: FreeGpus, job: Job) -> FreeGpus:
    """The free GPUs that a job can use: a copy if there are others, else `free` itself."""
    return for_groups(free.fed(job), job)


def for_groups(free: FreeGpus, job: Job) -> FreeGpus:
    """The free GPUs without those that would split a tensor group: a copy if there are any.

    A job that does not fit the empty cluster in whole groups may split them.
    """
    tree = free.tree
    size = min(job.tensor, tree.largest(tree.machine))
    if size < 2 or _whole_groups(tree, size) < job.gpus:
        return free
    left = np.asarray(free.counts(tree.machine)) % size
    machines = np.flatnonzero(left)
    if not len(machines):
        return free
    free = free.copy()
    for machine, gpus in zip(machines.tolist(), left[machines].tolist(), strict=True):
        free.claim(Placement.of(pack_in_unit(free, tree.machine, machine, gpus)))
    return free


@lru_cache(maxsize=64)
def _whole_groups(tree: ClusterTree, size: int) -> int:
    """The GPUs in whole groups that the empty cluster can hold."""
    return sum(gpus // size * size for gpus in tree.levels[tree.machine].gpus)


def free_after(view: ClusterView, decisions: Sequence[Decision]) -> FreeGpus:
    """The free GPUs once these decisions are applied."""
    free = view.free.copy()
    leaving = {x.handle for x in decisions if isinstance(x, Preempt | Migrate)}
    for handle in leaving:
        job = view.running[handle]
        assert job.placement is not None  # running jobs have GPUs
        # Shared GPUs are free if all their jobs leave. The job with the least handle counts them.
        if all(other in leaving and handle < other for other in job.beside):
            free.release(job.placement, job.job)
    for decision in decisions:
        if isinstance(decision, Start | Migrate) and decision.beside is None:
            job = view.waiting.get(decision.handle) or view.running[decision.handle]
            free.claim(decision.placement, job.job)
    return free


def tree_for(view: ClusterView, job: Job) -> ClusterTree:
    """The empty cluster with only the GPUs that a job could use."""
    hosts = view.free.hosts
    return view.cluster if hosts is None else hosts.tree_for(job)


def empty_for(view: ClusterView, job: Job) -> FreeGpus:
    """All GPUs of the empty cluster that a job could use."""
    return FreeGpus(tree_for(view, job))


def of_other_kinds(free: FreeGpus, job: Job) -> Shortage | None:
    """The shortage if enough GPUs are free for a job, but too few of kinds that it accepts."""
    if free.hosts is None or free.total < job.gpus_min:
        return None
    left = free.fed(job).total
    return None if left >= job.gpus_min else Shortage(of_kind(job.gpu_kinds), left, free.total)


def lacking(
    free: FreeGpus, job: Job, place: Callable[[FreeGpus], Placement | None]
) -> Shortage | None:
    """What machines or GPUs lack, if only this keeps a job from GPUs that `place` would give it."""
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
