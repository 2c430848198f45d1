"""The winners of an auction of Themis: which bids get how many GPUs. Two searches find them.

**Exact**, by dynamic programming: no allocation has a larger sum of gains.

    best[i][g] = max over k of gain_i(k) + best[i + 1][g - k]

is the largest sum of gains of the bids i, i + 1, ... with g GPUs. Time and memory grow as bids x
GPUs.

**Greedy**, for auctions too large for that. The sum of gains is at least half of the largest one:

1. The options of each bid are reduced to their upper hull over GPUs.
2. Steps along the hulls are taken, the largest gain per GPU first. A step that does not fit ends
   its bid.
3. If one option alone is worth more than everything that was won, the search starts again from
   that option.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Step = tuple[int, float]
"""GPUs and gain."""

SAME = 1e-9
"""Sums of gains that differ by less count as equal. Rounding of logarithms is far smaller: a
thousand sums of gains below 100 are off by less than 1e-10."""


@dataclass(frozen=True, slots=True)
class Bid:
    """What a job bids for each number of GPUs that it can run on. `job` is its handle."""

    job: int
    options: tuple[Step, ...]
    """(GPUs, gain): GPUs rise, gains are above 0."""


def useful(bid: Bid) -> Bid:
    """The bid without options that gain no more than fewer GPUs do, or than none."""
    options: list[Step] = []
    most = 0.0
    for count, gain in bid.options:
        if gain > most + SAME:
            options.append((count, gain))
            most = gain
    return Bid(bid.job, tuple(options))


Sums = npt.NDArray[np.float64]
"""The largest sum of gains, by number of GPUs."""


def best_sums(bids: Sequence[Bid], gpus: int) -> list[Sums]:
    """`best[i]` for every bid, and one of zeros behind the last bid."""
    best = [np.zeros(gpus + 1)]
    for bid in reversed(bids):
        best.append(_with(best[-1], bid))
    return best[::-1]


def exact_winners(bids: Sequence[Bid], best: Sequence[Sums]) -> dict[int, int]:
    """GPUs per winning job.

    Among equal allocations the first bid gets the most GPUs that one of them gives it, then the
    second bid, and so on.
    """
    won = {}
    left = len(best[0]) - 1
    for bid, sums, rest in zip(bids, best, best[1:], strict=False):
        enough = sums[left] - SAME
        for count, gain in reversed(bid.options):
            if count <= left and gain + rest[left - count] >= enough:
                won[bid.job] = count
                left -= count
                break
    return won


def sums_without(bids: Sequence[Bid], best: Sequence[Sums]) -> list[float]:
    """Per bid: the largest sum of gains of the other bids."""
    sums = []
    before = np.zeros_like(best[0])
    for bid, after in zip(bids, best[1:], strict=True):
        # The bids before this one get g GPUs, those after it the others.
        sums.append(float((before + after[::-1]).max()))
        before = _with(before, bid)
    return sums


def _with(best: Sums, bid: Bid) -> Sums:
    """The largest sums of gains with one more bid."""
    sums = best.copy()
    for count, gain in bid.options:
        if count < len(sums):
            np.maximum(sums[count:], best[: len(best) - count] + gain, out=sums[count:])
    return sums


def greedy_winners(bids: Sequence[Bid], gpus: int) -> dict[int, int]:
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
