"""Joint placements of several jobs whose numbers of GPUs are decided.

A policy such as Themis decides how many GPUs each job gets. Several placements fit these numbers
and are equally good for every job. This module lists them in a fixed order. A caller that knows
more, about contention on links for example, chooses one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import combinations, islice

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement, tier
from artist.cluster.placement_shape import Shape, shape
from artist.contract import ClusterView
from artist.policies.shared.packing import best_level, pack_in_unit
from artist.policies.shared.sharing import Busy, Sharing

Place = Callable[[FreeGpus, int, Busy], "Placement | None"]
"""A placer's rule for one job: `Placer.place`."""


def joint_placements(
    place: Place, view: ClusterView, counts: Mapping[int, int], n: int
) -> Iterator[Mapping[int, Placement]]:
    """Up to `n` joint placements by handle, in a fixed order.

    `counts` holds the number of GPUs of each job, by handle; 0 means that the job loses its GPUs.
    The pool holds the free GPUs and those of the running jobs in `counts`. A job that cannot be
    placed is missing from the answer.

    **The first placement.** A running job whose count does not change keeps its GPUs if no
    placement of so many GPUs can have a better level. Then the other jobs are placed: the largest
    first, equal ones by handle. Among these, a running job whose count does not change and whose
    GPUs are still in the pool moves only to a better level.

    **The other placements** give every job the same shape as the first one does. In each, one job
    has moved to other GPUs of the pool, or two jobs have swapped places. Moves come before
    swaps, in order of handles and units. A job that keeps its GPUs in the first placement keeps
    them in all.
    """
    return islice(_all(place, view, counts), n)


def _all(
    place: Place, view: ClusterView, counts: Mapping[int, int]
) -> Iterator[dict[int, Placement]]:
    pool = view.free.copy()
    running = view.running
    held = {handle: running[handle].placement for handle in counts if handle in running}
    for placement in held.values():
        assert placement is not None  # running jobs have GPUs
        pool.release(placement)
    sharing = Sharing(view)
    first = _first(place, pool, counts, held, sharing)
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
    place: Place,
    pool: FreeGpus,
    counts: Mapping[int, int],
    held: Mapping[int, Placement | None],
    sharing: Sharing,
) -> dict[int, Placement]:
    """The first joint placement. Its GPUs are claimed from the pool."""
    tree = pool.tree
    placed: dict[int, Placement] = {}
    same = {handle: p for handle, p in held.items() if p and p.gpus == counts[handle]}
    for handle, current in sorted(same.items()):
        if tier(tree, current) <= best_level(tree, current.gpus):
            pool.claim(current)
            placed[handle] = current
    for handle in sorted(held.keys() - placed.keys()):
        sharing.move(handle, None)
    rest = [handle for handle, gpus in counts.items() if gpus and handle not in placed]
    for handle in sorted(rest, key=lambda handle: (-counts[handle], handle)):
        placement = place(pool, counts[handle], sharing.busy)
        current_placement = same.get(handle)
        if current_placement and pool.has(current_placement):
            better = placement and tier(tree, placement) < tier(tree, current_placement)
            placement = placement if better else current_placement
        if placement is not None:
            pool.claim(placement)
            placed[handle] = placement
            sharing.move(handle, placement)
    return placed


def _alike(pool: FreeGpus, placement: Placement, wanted: Shape) -> Iterator[Placement]:
    """Placements of the wanted shape, in the other units of the tier of `placement`."""
    tree = pool.tree
    level = tier(tree, placement)
    own = tree.ancestor(0, placement.leaves[0], level)
    for unit in pool.at_least(level, placement.gpus):
        if unit != own:
            other = Placement.of(pack_in_unit(pool, level, unit, placement.gpus))
            if shape(tree, other) == wanted:
                yield other
