"""Themis' partial-allocation auction over numbers of GPUs.

Source: Mahajan et al., *Themis* (NSDI 2020), section 3.3 (after Cole, Gkatzelis and Goel, EC
2013). V_i(k) = 1 / rho_i(k) is a job's valuation of k GPUs.

    winners  = the k that maximise prod V_i(k_i), sum k_i <= GPUs on offer
    payment  = 1 - c_i,  c_i = prod_{j != i} V_j(winners) / prod_{j != i} V_j(winners without i)

Job i keeps the fraction c_i of what it won. Bids hold `gain = log V(k) - log V(0)`, so products
become sums. Gains and sums are compared without rounding (`gains.py`).

**Approximation.** The maximum is a knapsack problem. A greedy search solves it approximately:

1. The options of each bid are reduced to their upper hull over GPUs.
2. Steps along the hulls are taken, the largest gain per GPU first. A step that does not fit ends
   its bid.
3. If one option alone is worth more than everything that was won, the search starts again from
   that option.

The sum of gains is at least half of the best one.

**Gangs.** GPUs are whole, and a gang cannot run on fewer GPUs than its least option. So a winner
keeps the largest option within `c_i k_i`, but at least its least option. A job with one option
pays nothing. To this extent the paper's proof that lying does not pay no longer holds. Simulated
jobs do not lie.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from artist.policies.themis.gains import NOTHING, Gain, Slope, kept_fraction

Step = tuple[int, Gain]
"""GPUs and gain."""

_NONE: Step = (0, NOTHING)


@dataclass(frozen=True, slots=True)
class Bid:
    """What a job bids for each number of GPUs that it can run on. `job` is its handle."""

    job: int
    options: tuple[Step, ...]
    """(GPUs, gain): GPUs rise, gains are above 0."""


def auction(bids: Sequence[Bid], gpus: int) -> dict[int, int]:
    """GPUs per winning job, after payments. Among equals the earlier bid wins."""
    won = winners(bids, gpus)
    values = {bid.job: dict(bid.options) for bid in bids}
    return {
        bid.job: _kept(bid, won, winners([b for b in bids if b is not bid], gpus), values)
        if len(bid.options) > 1
        else won[bid.job]
        for bid in bids
        if bid.job in won
    }


def winners(bids: Sequence[Bid], gpus: int) -> dict[int, int]:
    """GPUs per winning job, before payments."""
    won, taken = _greedy(bids, gpus, {})
    best: tuple[Gain, int, int] | None = None
    for position, bid in enumerate(bids):
        for count, gain in bid.options:
            if count <= gpus and (best is None or gain > best[0]):
                best = gain, position, count
    if best is not None and best[0].exceeds(taken):
        won, _ = _greedy(bids, gpus, {bids[best[1]].job: best[2]})
    return won


def _greedy(
    bids: Sequence[Bid], gpus: int, fixed: Mapping[int, int]
) -> tuple[dict[int, int], list[Gain]]:
    """GPUs per winning job, and their gains; `fixed` wins before the search, without gain."""
    won = dict(fixed)
    gains: dict[int, Gain] = {}
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
        step = hull[index][0] - (hull[index - 1][0] if index else 0)
        if step > gpus:
            continue
        gpus -= step
        won[bids[position].job], gains[position] = hull[index]
        if index + 1 < len(hull):
            heapq.heappush(heap, _entry(hull, index + 1, position))
    return won, list(gains.values())


def _entry(hull: Sequence[Step], index: int, position: int) -> tuple[Slope, int, int]:
    """Heap entry of a step: the largest gain per GPU first, then the earlier bid."""
    return -_slope(hull[index - 1] if index else _NONE, hull[index]), position, index


def _hull(options: Sequence[Step]) -> list[Step]:
    """The options on the upper hull from (0, 0), where gain per GPU falls."""
    hull: list[Step] = []
    for option in options:
        while hull:
            before = hull[-2] if len(hull) > 1 else _NONE
            if _slope(hull[-1], option) < _slope(before, hull[-1]):
                break
            hull.pop()
        if not hull or option[1] > hull[-1][1]:
            hull.append(option)
    return hull


def _slope(left: Step, right: Step) -> Slope:
    gain = right[1] if left is _NONE else right[1] - left[1]
    return Slope(gain, right[0] - left[0])


def _kept(
    bid: Bid,
    won: Mapping[int, int],
    without: Mapping[int, int],
    values: Mapping[int, Mapping[int, Gain]],
) -> int:
    """GPUs that a winner keeps after its hidden payment."""
    # A job that wins as much either way stands on both sides of the fraction.
    others = [
        values[job][count]
        for job, count in won.items()
        if job != bid.job and without.get(job) != count
    ]
    alone = [values[job][count] for job, count in without.items() if won.get(job) != count]
    num, den = kept_fraction(others, alone)
    within = [count for count, _ in bid.options if count * den <= num * won[bid.job]]
    return max(within, default=bid.options[0][0])
