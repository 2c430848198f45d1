"""Other placements of the same shape, and other joint placements of several jobs.

Placements of one shape are equally good for a job, as long as no other job is on the links.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import TypeAlias

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement, tier
from artist.cluster.placement_shape import Shape, shape
from artist.cluster.tree import ClusterTree
from artist.policies.shared.packing import pack_in_unit

MOST_TRIED = 256
"""How many parts are tried for a job at one question, as there may be no second place for it."""


def others_of_shape(pool: FreeGpus, placement: Placement) -> Iterator[Placement]:
    """Placements of the same shape on free GPUs of the pool, in a fixed order.

    The parts of a placement are in children of the smallest unit that holds it. Whole placements
    move to other such units, and single parts to other children. The smallest part changes first.
    """
    tree = pool.tree
    level = tier(tree, placement)
    if level <= tree.machine:
        return
    parts = _parts(tree, placement, level)
    budget = iter(range(MOST_TRIED))
    for unit in pool.at_least(level, placement.gpus):
        for taken in _assigned(pool, level, unit, parts, (), budget):
            other = Placement.of(taken)
            if other != placement:
                yield other


def other_joint_placements(
    pool: FreeGpus, first: Mapping[int, Placement], kept: Mapping[int, Placement | None]
) -> Iterator[dict[int, Placement]]:
    """Joint placements with the shapes of the `first` one, whose GPUs are not in the pool.

    In each, one job has moved to other GPUs of the pool, or two jobs have swapped places. First
    comes one move of each job, then swaps, then further moves. No job gets its GPUs in `kept`.
    """
    moves = {handle: others_of_shape(_with(pool, first[handle]), first[handle]) for handle in first}
    for further in (False, True):
        for handle, others in moves.items():
            for other in others:
                if other != kept.get(handle):
                    yield {**first, handle: other}
                    if not further:
                        break
        if not further:
            yield from _swaps(pool.tree, first, kept)


def _swaps(
    tree: ClusterTree, first: Mapping[int, Placement], kept: Mapping[int, Placement | None]
) -> Iterator[dict[int, Placement]]:
    shapes = {handle: shape(tree, placement) for handle, placement in first.items()}
    for one, two in combinations(first, 2):
        swapped = {one: first[two], two: first[one]}
        if shapes[one] == shapes[two] and all(
            placement != kept.get(handle) for handle, placement in swapped.items()
        ):
            yield {**first, **swapped}


def _with(pool: FreeGpus, placement: Placement) -> FreeGpus:
    more = pool.copy()
    more.release(placement)
    return more


_Part: TypeAlias = "tuple[int, Shape]"
"""GPUs of a job in one unit, and their shape."""


def _parts(tree: ClusterTree, placement: Placement, level: int) -> list[_Part]:
    """The parts in the children of the unit that holds a placement, largest first."""
    inside: dict[int, dict[int, int]] = {}
    for leaf, count in zip(placement.leaves, placement.counts, strict=True):
        inside.setdefault(tree.ancestor(0, leaf, level - 1), {})[leaf] = count
    parts = [Placement.of(taken) for taken in inside.values()]
    return sorted(((part.gpus, shape(tree, part)) for part in parts), key=_by_size, reverse=True)


def _by_size(part: _Part) -> tuple[int, str]:
    return part[0], repr(part[1])


def _assigned(
    pool: FreeGpus,
    level: int,
    unit: int,
    parts: Sequence[_Part],
    used: tuple[int, ...],
    budget: Iterator[int],
) -> Iterator[dict[int, int]]:
    """GPUs by leaf, for each way to assign the parts to different children of a unit.

    `used` holds the children of earlier parts, as positions. Equal parts take children in visiting
    order, so that no assignment comes twice.
    """
    if len(used) == len(parts):
        yield {}
        return
    gpus, wanted = part = parts[len(used)]
    after = used[-1] + 1 if used and parts[len(used) - 1] == part else 0
    children, counts = pool.children(level, unit)
    for place in range(after, len(children)):
        if counts[place] < gpus or place in used:
            continue
        if next(budget, None) is None:
            return
        taken = pack_in_unit(pool, level - 1, children[place], gpus)
        if shape(pool.tree, Placement.of(taken)) == wanted:
            for rest in _assigned(pool, level, unit, parts, (*used, place), budget):
                yield {**taken, **rest}
