"""Where the GPUs lie that a Themis auction handed out.

The auction ends in numbers. A joint placer turns them into placements, and can name several
that are equally good for every job's finish-time fairness, for somebody who knows more (about
contention on links, say) to choose from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations, islice
from typing import Protocol

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement, signature, tier
from artist.contract import ClusterView
from artist.policies.shared.placers import Placer, best_level, pack_in_unit


class JointPlacer(Protocol):
    """A rule from GPU counts of several jobs to their placements."""

    def candidates(
        self, view: ClusterView, counts: Mapping[int, int], n: int
    ) -> Iterator[Mapping[int, Placement]]:
        """Up to `n` joint placements, of equal finish-time fairness, in a fixed order.

        `counts` names jobs by `order`. The GPUs of its running jobs are up for use together with
        the free ones; 0 stands for a job that loses its GPUs. A job that cannot be
        placed is missing from the answer.
        """
        ...


class EqualPlacements:
    """One joint placement by a placer, then others in which every job has the same shape.

    **The first.** A running job with an unchanged count and its GPUs as close together as so
    many can ever be keeps them. The others are placed largest first, then by order of arrival;
    a running one whose GPUs are still there moves only to a better level.
    **The others** differ from it in one move of one job to other free GPUs, or in two jobs changing
    places, moves first, in order of jobs and units; jobs that keep their GPUs keep them.
    """

    def __init__(self, placer: Placer) -> None:
        self._placer = placer

    def candidates(
        self, view: ClusterView, counts: Mapping[int, int], n: int
    ) -> Iterator[Mapping[int, Placement]]:
        """See `JointPlacer`."""
        return islice(self._all(view, counts), n)

    def _all(self, view: ClusterView, counts: Mapping[int, int]) -> Iterator[dict[int, Placement]]:
        pool = view.free.copy()
        held = {order: job.placement for order, job in view.running.items() if order in counts}
        for placement in held.values():
            assert placement is not None  # running jobs have GPUs
            pool.release(placement)
        first = self._first(pool, counts, held)
        yield first
        movable = [order for order in sorted(first) if held.get(order) != first[order]]
        shapes = {order: signature(pool.tree, first[order]) for order in movable}
        for order in movable:
            for other in _alike(pool, first[order], shapes[order]):
                if other != held.get(order):
                    yield {**first, order: other}
        for one, two in combinations(movable, 2):
            swapped = {one: first[two], two: first[one]}
            if shapes[one] == shapes[two] and all(
                place != held.get(order) for order, place in swapped.items()
            ):
                yield {**first, **swapped}

    def _first(
        self, pool: FreeGpus, counts: Mapping[int, int], held: Mapping[int, Placement | None]
    ) -> dict[int, Placement]:
        """Claims its placements from the pool."""
        tree = pool.tree
        found: dict[int, Placement] = {}
        same = {order: p for order, p in held.items() if p and p.gpus == counts[order]}
        for order, current in sorted(same.items()):
            if tier(tree, current) <= best_level(tree, current.gpus):
                pool.claim(current)
                found[order] = current
        rest = [order for order, gpus in counts.items() if gpus and order not in found]
        for order in sorted(rest, key=lambda order: (-counts[order], order)):
            placement = self._placer.place(pool, counts[order])
            stay = same.get(order)
            if stay and pool.has(stay):
                better = placement and tier(tree, placement) < tier(tree, stay)
                placement = placement if better else stay
            if placement is not None:
                pool.claim(placement)
                found[order] = placement
        return found


def _alike(free: FreeGpus, placement: Placement, shape: str) -> Iterator[Placement]:
    """Placements of the same shape on free GPUs, in other units of the level it spans."""
    tree = free.tree
    level = tier(tree, placement)
    own = tree.ancestor(0, placement.leaves[0], level)
    for unit in free.at_least(level, placement.gpus):
        if unit != own:
            other = Placement.of(pack_in_unit(free, level, unit, placement.gpus))
            if signature(tree, other) == shape:
                yield other
