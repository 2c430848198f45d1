"""The winners of an auction by dynamic programming: no allocation has a larger sum of gains.

    best[i][g] = max over k of gain_i(k) + best[i + 1][g - k]

is the largest sum of gains of the bids i, i + 1, ... with g GPUs. Time and memory grow as bids x
GPUs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from artist.policies.themis.bid import SAME, Bid

Sums = npt.NDArray[np.float64]
"""The largest sum of gains, by number of GPUs."""


def tables(bids: Sequence[Bid], gpus: int) -> list[Sums]:
    """`best[i]` for every bid, and one of zeros behind the last bid."""
    best = [np.zeros(gpus + 1)]
    for bid in reversed(bids):
        best.append(_with(best[-1], bid))
    return best[::-1]


def winners(bids: Sequence[Bid], best: Sequence[Sums]) -> dict[int, int]:
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
