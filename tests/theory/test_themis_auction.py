"""Is Themis' auction the written one? Compared with a search over all allocations.

The search multiplies valuations as fractions. So ties are exact here, and rounding in the auction
shows up as another winner. Hidden payments are those of the naive simulator, whose winners are
compared with the same search.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product
from random import Random

import naive_themis
import pytest
from naive_themis import Option, useful

from artist.policies.themis.auction import auction, winners
from artist.policies.themis.winners import Bid

NONE: Option = (0, Fraction(1))
LIKELY = [Fraction(n, d) for n, d in ((2, 1), (3, 1), (4, 1), (6, 1), (3, 2), (4, 3), (9, 8))]


def random_bids(rng: Random) -> tuple[list[list[Option]], int]:
    """Options of one to five jobs, and the GPUs on offer.

    Half of the instances draw from few numbers, whose products are often equal.
    """
    likely = rng.random() < 0.5
    gangs = rng.random() < 0.3
    bids = []
    for _ in range(rng.randint(1, 5)):
        counts = sorted(rng.sample(range(1, 7), 1 if gangs else rng.randint(1, 4)))
        values = [
            rng.choice(LIKELY) if likely else 1 + Fraction(rng.randint(1, 400), rng.randint(1, 200))
            for _ in counts
        ]
        # Mostly more GPUs are worth more, but not always: on several machines a job may be slower.
        if rng.random() < 0.7:
            values.sort()
        bids.append(list(zip(counts, values, strict=True)))
    return bids, rng.randint(1, 14)


def as_bid(handle: int, options: Sequence[Option]) -> Bid:
    return Bid(handle, tuple((count, math.log(value)) for count, value in options))


def best(bids: Mapping[int, Sequence[Option]], gpus: int) -> dict[int, int]:
    """The allocation of largest product; among equals the first bid gets most, then the second."""
    every = product(*([NONE, *options] for options in bids.values()))
    allocations = [chosen for chosen in every if sum(count for count, _ in chosen) <= gpus]
    chosen = max(
        allocations,
        key=lambda chosen: (
            math.prod(value for _, value in chosen),
            [count for count, _ in chosen],
        ),
    )
    return {handle: count for handle, (count, _) in zip(bids, chosen, strict=True) if count}


SEEDS = [range(start, start + 250) for start in range(0, 1_000, 250)]


@pytest.mark.parametrize("seeds", SEEDS, ids=str)
def test_winners_and_payments_are_those_of_a_search_over_all_allocations(seeds) -> None:
    for seed in seeds:
        drawn, gpus = random_bids(Random(seed))
        asked = [as_bid(handle, options) for handle, options in enumerate(drawn)]
        bids = {handle: useful(options) for handle, options in enumerate(drawn)}
        won = best(bids, gpus)
        assert winners(asked, gpus) == won, (seed, drawn, gpus)
        assert naive_themis.winners(bids, gpus) == won, (seed, drawn, gpus)
        assert auction(asked, gpus) == naive_themis.kept(bids, won, gpus), (seed, drawn, gpus)
