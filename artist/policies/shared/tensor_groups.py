"""Tensor groups stay in a machine: the free GPUs that a divided job can use.

The GPUs of a tensor group exchange activations several times per block (arXiv:2104.04473, takeaway
1). A job with groups of t gets t, 2t, ... GPUs of a machine; a machine that is smaller than a group
is taken whole. Pipelines and replicas may lie anywhere.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement
from artist.cluster.tree import ClusterTree
from artist.policies.shared.packing import pack_in_unit
from artist.workload.job import Job


def for_groups(free: FreeGpus, job: Job) -> FreeGpus:
    """The free GPUs without those that would split a tensor group; a copy if there are any.

    A job that would not even fit the empty cluster so may split its groups.
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
    """The GPUs of the whole groups that the empty cluster holds."""
    return sum(gpus // size * size for gpus in tree.levels[tree.machine].gpus)
