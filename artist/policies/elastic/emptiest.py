"""Placing jobs on the machines with most free GPUs, as the baselines in Pollux's program do.

Source: simulator/tiresias.py and optimus.py of petuum/adaptdl, branch osdi21-artifact.
"""

from __future__ import annotations

from collections.abc import Mapping

from artist.cluster.free_gpus import FreeGpus, Unit
from artist.cluster.placement import Placement
from artist.contract import ClusterView, JobView
from artist.policies.elastic.rounds import pool_of
from artist.policies.shared.packing import fill_machines, widest_level


def emptiest(free: FreeGpus, gpus: int) -> Placement | None:
    """GPUs of the machines with most free GPUs, or None if there is no room.

    Equal machines come in visiting order. A job that fits a region stays in the first region with
    room.
    """
    tree = free.tree
    machine, level = tree.machine, widest_level(tree, gpus)
    if not free.fits_one(level, gpus):
        return None
    inside = None if level == tree.root else Unit(level, next(free.at_least(level, gpus)))
    machines = free.at_least(machine, 1, inside)
    return fill_machines(free, sorted(machines, key=lambda unit: -free.of(machine, unit)), gpus)


def on_emptiest(
    view: ClusterView, jobs: Mapping[int, JobView], counts: Mapping[int, int]
) -> dict[int, Placement]:
    """Placements of jobs that get `counts` GPUs, by handle; jobs without room are missing.

    Jobs that already run on this many GPUs keep them. Then the others are placed: jobs that accept
    fewer GPUs of the cluster first, and equal ones in the order of `counts`.
    """
    pool = pool_of(view, jobs)
    placed: dict[int, Placement] = {}
    for handle, gpus in counts.items():
        present = jobs[handle].placement
        if present is not None and present.gpus == gpus:
            pool.claim(present)
            placed[handle] = present
    for handle in sorted(counts, key=lambda handle: pool.fed(jobs[handle].job).tree.gpus):
        if counts[handle] and handle not in placed:
            placement = emptiest(pool.fed(jobs[handle].job), counts[handle])
            if placement is not None:
                pool.claim(placement)
                placed[handle] = placement
    return placed
