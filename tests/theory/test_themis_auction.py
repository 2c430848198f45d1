"""Is Themis' auction the written one? Compared with a search over all allocations.

The search multiplies valuations as fractions. So ties are exact here, and rounding in the auction
shows up as another winner.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from random import Random

import pytest

from artist.policies.themis.auction import auction, winners
from artist.policies.themis.winners import Bid

Valuation = tuple[int, Fraction]
"""GPUs, and the valuation of so many over the valuation of none."""
NONE: Valuation = (0, Fraction(1))
LIKELY = [Fraction(n, d) for n, d in ((2, 1), (3, 1), (4, 1), (6, 1), (3, 2), (4, 3), (9, 8))]


def random_bids(rng: Random) -> tuple[list[list[Valuation]], int]:
    """Valuations of one to five jobs, and the GPUs on offer.

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


def as_bid(handle: int, options: Sequence[Valuation]) -> Bid:
    return Bid(handle, tuple((count, math.log(value)) for count, value in options))


def useful(options: Sequence[Valuation]) -> list[Valuation]:
    """The options that are worth more than every option of fewer GPUs, and none."""
    return [
        NONE,
        *(
            (count, value)
            for count, value in options
            if all(value > less for fewer, less in options if fewer < count)
        ),
    ]


def allocations(bids: Sequence[Sequence[Valuation]], gpus: int) -> list[tuple[Valuation, ...]]:
    """All allocations of at most so many GPUs."""
    every = product(*(useful(options) for options in bids))
    return [chosen for chosen in every if sum(count for count, _ in chosen) <= gpus]


def best(bids: Sequence[Sequence[Valuation]], gpus: int) -> tuple[Valuation, ...]:
    """The allocation of largest product; among equals the first bid gets most, then the second."""
    return max(
        allocations(bids, gpus),
        key=lambda chosen: (
            math.prod(value for _, value in chosen),
            [count for count, _ in chosen],
        ),
    )


def kept(bids: Sequence[Sequence[Valuation]], gpus: int) -> dict[int, int]:
    """GPUs per winner after payments, by handle."""
    chosen = best(bids, gpus)
    counts = {}
    for handle, (count, _) in enumerate(chosen):
        if not count:
            continue
        with_it = math.prod(value for other, (_, value) in enumerate(chosen) if other != handle)
        others = [options for other, options in enumerate(bids) if other != handle]
        without_it = math.prod(value for _, value in best(others, gpus))
        options = [option for option, _ in useful(bids[handle])[1:]]
        fraction = Fraction(with_it, without_it)
        counts[handle] = max(
            (option for option in options if option <= fraction * count), default=options[0]
        )
    return counts


SEEDS = [range(start, start + 250) for start in range(0, 1_000, 250)]


@pytest.mark.parametrize("seeds", SEEDS, ids=str)
def test_winners_and_payments_are_those_of_a_search_over_all_allocations(seeds) -> None:
    for seed in seeds:
        bids, gpus = random_bids(Random(seed))
        asked = [as_bid(handle, options) for handle, options in enumerate(bids)]
        won = {handle: count for handle, (count, _) in enumerate(best(bids, gpus)) if count}
        assert winners(asked, gpus) == won, (seed, bids, gpus)
        assert auction(asked, gpus) == kept(bids, gpus), (seed, bids, gpus)
