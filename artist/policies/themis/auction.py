"""Themis' partial-allocation auction over numbers of GPUs.

Source: Mahajan et al., *Themis* (NSDI 2020), section 3.3 (after Cole, Gkatzelis and Goel, EC
2013). V_i(k) = 1 / rho_i(k) is a job's valuation of k GPUs.

    winners  = the k that maximise prod V_i(k_i), sum k_i <= GPUs on offer
    payment  = 1 - c_i,  c_i = prod_{j != i} V_j(winners) / prod_{j != i} V_j(winners without i)

Job i keeps the fraction c_i of what it won. Bids hold `gain = log V(k) - log V(0)`, so products
become sums.

**Ties.** An option that is worth no more than one of fewer GPUs, or than none, is not an option.
Among allocations of equal product, the first bid gets the most GPUs that one of them gives it, then
the second bid, and so on. Bids come in the order of rho, so the job that is worse off wins a tie.
Values that differ by less than 1e-9 of themselves count as equal (`SAME`): that is rounding.

**Search.** The maximum is a knapsack problem. It is solved exactly as long as bids x GPUs is at
most `LARGEST_EXACT`, else to at least half of the largest sum of gains (`winners.py`).

**Gangs.** GPUs are whole, and a gang cannot run on fewer GPUs than its least option. So a winner
keeps the largest option within `c_i k_i`, but at least its least option. A job with one option
pays nothing. To this extent the paper's proof that lying does not pay no longer holds. Simulated
jobs do not lie.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from artist.policies.themis.winners import (
    Bid,
    best_sums,
    exact_winners,
    greedy_winners,
    sums_without,
    useful,
)

# Our choice: such an auction takes some 50 ms and 80 MB. A fifth of 500 jobs bidding for 1,024 GPUs
# are a hundredth of it. On random small auctions the greedy search misses the maximum in 13 of 100.
LARGEST_EXACT = 10_000_000


def auction(bids: Sequence[Bid], gpus: int) -> dict[int, int]:
    """GPUs per winning job, after payments."""
    bids = [useful(bid) for bid in bids]
    won, without = _search(bids, gpus)
    total = _sum(bids, won)
    return {
        bid.job: _kept(bid, won[bid.job], total, others)
        for bid, others in zip(bids, without, strict=True)
        if bid.job in won
    }


def winners(bids: Sequence[Bid], gpus: int) -> dict[int, int]:
    """GPUs per winning job, before payments."""
    return _search([useful(bid) for bid in bids], gpus)[0]


def _search(bids: Sequence[Bid], gpus: int) -> tuple[dict[int, int], list[float]]:
    """GPUs per winning job, and per bid the largest sum of gains of the other bids.

    That sum is 0 for bids with fewer than two options: these pay nothing.
    """
    gpus = min(gpus, sum(bid.options[-1][0] for bid in bids if bid.options))
    pays = [len(bid.options) > 1 for bid in bids]
    if len(bids) * gpus <= LARGEST_EXACT:
        best = best_sums(bids, gpus)
        without = sums_without(bids, best) if any(pays) else [0.0] * len(bids)
        return exact_winners(bids, best), without
    others = [[other for other in bids if other is not bid] for bid in bids]
    return greedy_winners(bids, gpus), [
        _sum(rest, greedy_winners(rest, gpus)) if pay else 0.0
        for rest, pay in zip(others, pays, strict=True)
    ]


def _sum(bids: Sequence[Bid], won: Mapping[int, int]) -> float:
    """The sum of gains of an allocation."""
    return sum(dict(bid.options)[won[bid.job]] for bid in bids if bid.job in won)


def _kept(bid: Bid, won: int, total: float, without: float) -> int:
    """GPUs that a winner of this many keeps after its hidden payment.

    `total` is the sum of all winners' gains, `without` that of the others without this bid.
    """
    others = total - dict(bid.options)[won]
    # The greedy search may find less for the others without this bid, hence the `min`.
    fraction = math.exp(min(0.0, others - without))
    # A count that equals the limit but for rounding is within it.
    within = [count for count, _ in bid.options if count <= fraction * won + 1e-9]
    return max(within, default=bid.options[0][0])
