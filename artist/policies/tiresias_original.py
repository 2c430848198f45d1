"""Tiresias as the original simulator has it: pure functions, for its rules and for replays.

It differs from the paper on purpose of its authors or by accident:

- priority is continuous: the least attained service (GPUs x time held) first, then who has been
  without GPUs longest, then order of arrival (job number); no queues, no promotion;
- skew is a fixed list of models (`skew.py`);
- **levels**: a machine is tried first, by first fit. A rack is open to unskewed jobs and, by
  what looks like a slip (the free GPUs of the cluster stand where the job's demand
  should), to every job while at least a machine's worth of GPUs is free in the cluster. The
  whole network is open to unskewed jobs and to jobs larger than a rack. There are no timers;
- inside the accepted level it takes the first free GPUs in cluster order, without packing;
- GPUs whose lease ended go back to the pool before anybody bids, so a job can be moved
  although nobody wanted its GPUs.

Not replicated: running jobs that bid again (which leaks GPUs), and the order in which its hash
tables visit machines; `first_fit` takes any, the cluster's order of visits by default. Like
everywhere here, a lease renews in place while nobody waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from artist.cluster.placement import Placement
from artist.cluster.state import FreeGpus
from artist.policies.base import Decision, JobView, Migrate, Preempt, Start
from artist.units import Tick

FirstFit: TypeAlias = Callable[[FreeGpus, int, int], "int | None"]
"""The first unit of a level with so many free GPUs, in some order."""


def original_rank(view: JobView, now: Tick) -> tuple[float, ...]:
    """Smaller bids higher; equals are told apart by order of arrival."""
    without_since = now if view.placement else view.entered
    return (view.service_gpu_s(now), without_since)


def original_levels(free: FreeGpus, gpus: int, skewed: bool) -> list[int]:
    """The levels open to a job, innermost first, whether or not they have room."""
    tree = free.tree
    levels = [tree.machine]
    if not skewed or free.total >= tree.largest(tree.machine):
        levels += range(tree.machine + 1, tree.root)
    if not skewed or gpus > tree.largest(tree.root - 1):
        levels.append(tree.root)
    return levels


def original_place(
    free: FreeGpus, gpus: int, skewed: bool, first_fit: FirstFit = FreeGpus.first_fit
) -> Placement | None:
    """First fit in the first open level with room; None to wait.

    `first_fit(free, level, gpus)` picks the machine.
    """
    if gpus > free.total:
        return None
    for level in original_levels(free, gpus, skewed):
        inside = first_fit if level == free.tree.machine else FreeGpus.first_fit
        unit = inside(free, level, gpus)
        if unit is not None:
            return _first_gpus(free, level, unit, gpus)
    return None


def original_round(
    free: FreeGpus,
    lease_ended: Sequence[JobView],
    ranked: Callable[[FreeGpus], Iterable[JobView]],
    place: Callable[[JobView, FreeGpus], Placement | None],
) -> list[Decision]:
    """One round of the allocator: expired GPUs into the pool, then first fit in order of bids.

    `ranked(pool)` yields waiting and lease-ended jobs, best bid first.
    """
    pool = free.copy()
    for view in lease_ended:
        assert view.placement is not None  # running jobs have GPUs
        pool.release(view.placement)
    decisions: list[Decision] = []
    for view in ranked(pool):
        placement = place(view, pool)
        if placement is not None:
            pool.claim(placement)
        if view.placement is None:
            if placement is not None:
                decisions.append(Start(view.order, placement))
        elif placement is None:
            decisions.append(Preempt(view.order))
        elif placement != view.placement:
            decisions.append(Migrate(view.order, placement))
    return decisions


def _first_gpus(free: FreeGpus, level: int, unit: int, gpus: int) -> Placement:
    """The first free GPUs of a unit in cluster order."""
    leaves = range(unit, unit + 1)
    for outer in range(level, 0, -1):
        first = free.tree.levels[outer].first_child
        leaves = range(first[leaves.start], first[leaves.stop])
    taken: dict[int, int] = {}
    for leaf, count in zip(
        leaves, free.counts(0)[leaves.start : leaves.stop].tolist(), strict=True
    ):
        if count:
            taken[leaf] = min(gpus, count)
            gpus -= taken[leaf]
            if not gpus:
                break
    return Placement.of(taken)
