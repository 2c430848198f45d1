"""The winners of an auction by a greedy search, for auctions too large for the exact one.

The sum of gains is at least half of the largest one:

1. The options of each bid are reduced to their upper hull over GPUs.
2. Steps along the hulls are taken, the largest gain per GPU first. A step that does not fit ends
   its bid.
3. If one option alone is worth more than everything that was won, the search starts again from
   that option.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

from artist.policies.themis.bid import Bid, Step


def winners(bids: Sequence[Bid], gpus: int) -> dict[int, int]:
    """GPUs per winning job, before payments."""
    won, total = _greedy(bids, gpus, {})
    best: tuple[float, int, int] | None = None
    for position, bid in enumerate(bids):
        for count, gain in bid.options:
            if count <= gpus and gain > total and (best is None or gain > best[0]):
                best = gain, position, count
    if best is not None:
        won, _ = _greedy(bids, gpus, {bids[best[1]].job: best[2]})
    return won


def _greedy(
    bids: Sequence[Bid], gpus: int, fixed: Mapping[int, int]
) -> tuple[dict[int, int], float]:
    """GPUs per winning job and the sum of gains; `fixed` wins before the search, without gain."""
    won, total = dict(fixed), 0.0
    gpus -= sum(fixed.values())
    hulls = [
        [] if bid.job in fixed else _hull([option for option in bid.options if option[0] <= gpus])
        for bid in bids
    ]
    heap = [_entry(hull, 0, position) for position, hull in enumerate(hulls) if hull]
    heapq.heapify(heap)
    while heap and gpus:
        _, position, index = heapq.heappop(heap)
        hull = hulls[position]
        before = hull[index - 1] if index else (0, 0.0)
        step = hull[index][0] - before[0]
        if step > gpus:
            continue
        gpus -= step
        won[bids[position].job] = hull[index][0]
        total += hull[index][1] - before[1]
        if index + 1 < len(hull):
            heapq.heappush(heap, _entry(hull, index + 1, position))
    return won, total


def _entry(hull: Sequence[Step], index: int, position: int) -> tuple[float, int, int]:
    """Heap entry of a step: the largest gain per GPU first, then the earlier bid."""
    return -_slope(hull[index - 1] if index else (0, 0.0), hull[index]), position, index


def _hull(options: Sequence[Step]) -> list[Step]:
    """The options on the upper hull from (0, 0), where gain per GPU falls."""
    hull: list[Step] = []
    for option in options:
        while hull:
            before = hull[-2] if len(hull) > 1 else (0, 0.0)
            if _slope(before, hull[-1]) > _slope(hull[-1], option):
                break
            hull.pop()
        if not hull or option[1] > hull[-1][1]:
            hull.append(option)
    return hull


def _slope(left: Step, right: Step) -> float:
    return (right[1] - left[1]) / (right[0] - left[0])
