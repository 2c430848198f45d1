"""Joint placements of several jobs whose numbers of GPUs are decided.

A policy such as Themis decides how many GPUs each job gets. These numbers leave a choice of
placements that are equally good for every job. Somebody who knows more, about contention on
links say, chooses among them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import combinations, islice

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement, tier
from artist.cluster.shape import Shape, shape
from artist.contract import ClusterView
from artist.policies.shared.packing import best_level, pack_in_unit

Place = Callable[[FreeGpus, int], "Placement | None"]
"""A placer's rule for one job: `Placer.place`."""


def joint_placements(
    place: Place, view: ClusterView, counts: Mapping[int, int], n: int
) -> Iterator[Mapping[int, Placement]]:
    """Up to `n` joint placements by handle, in a fixed order.

    `counts` names jobs by handle. The GPUs of its running jobs can be used, together with the
    free ones; 0 stands for a job that loses its GPUs. A job that cannot be placed is missing
    from the answer.

    **The first.** A running job with an unchanged count keeps its GPUs if they lie as close
    together as so many ever can. The others are placed, the largest first, then by handle. A
    running one whose GPUs are still there moves only to a better level.

    **The others** give every job the same shape. They differ from the first in one move of one
    job to other free GPUs, or in two jobs that change places. Moves come first, in order of
    handles and units. A job that keeps its GPUs in the first keeps them in all.
    """
    return islice(_all(place, view, counts), n)


def _all(
    place: Place, view: ClusterView, counts: Mapping[int, int]
) -> Iterator[dict[int, Placement]]:
    pool = view.free.copy()
    held = {handle: job.placement for handle, job in view.running.items() if handle in counts}
    for placement in held.values():
        assert placement is not None  # running jobs have GPUs
        pool.release(placement)
    first = _first(place, pool, counts, held)
    yield first
    movable = [handle for handle in sorted(first) if held.get(handle) != first[handle]]
    shapes = {handle: shape(pool.tree, first[handle]) for handle in movable}
    for handle in movable:
        for other in _alike(pool, first[handle], shapes[handle]):
            if other != held.get(handle):
                yield {**first, handle: other}
    for one, two in combinations(movable, 2):
        swapped = {one: first[two], two: first[one]}
        if shapes[one] == shapes[two] and all(
            placement != held.get(handle) for handle, placement in swapped.items()
        ):
            yield {**first, **swapped}


def _first(
    place: Place, pool: FreeGpus, counts: Mapping[int, int], held: Mapping[int, Placement | None]
) -> dict[int, Placement]:
    """Claims its placements from the pool."""
    tree = pool.tree
    placed: dict[int, Placement] = {}
    same = {handle: p for handle, p in held.items() if p and p.gpus == counts[handle]}
    for handle, current in sorted(same.items()):
        if tier(tree, current) <= best_level(tree, current.gpus):
            pool.claim(current)
            placed[handle] = current
    rest = [handle for handle, gpus in counts.items() if gpus and handle not in placed]
    for handle in sorted(rest, key=lambda handle: (-counts[handle], handle)):
        placement = place(pool, counts[handle])
        current_placement = same.get(handle)
        if current_placement and pool.has(current_placement):
            better = placement and tier(tree, placement) < tier(tree, current_placement)
            placement = placement if better else current_placement
        if placement is not None:
            pool.claim(placement)
            placed[handle] = placement
    return placed


def _alike(free: FreeGpus, placement: Placement, wanted: Shape) -> Iterator[Placement]:
    """Placements of the same shape on free GPUs, in other units of the level it spans."""
    tree = free.tree
    level = tier(tree, placement)
    own = tree.ancestor(0, placement.leaves[0], level)
    for unit in free.at_least(level, placement.gpus):
        if unit != own:
            other = Placement.of(pack_in_unit(free, level, unit, placement.gpus))
            if shape(tree, other) == wanted:
                yield other
