"""Themis: each rule on a trace worked out by hand. Comments derive the expected times."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from paper_cases import count, job, run, simulator, times
from support import question

from artist.policies.shared.placers import PackPlacer
from artist.policies.themis import auction as module
from artist.policies.themis.auction import auction, winners
from artist.policies.themis.options import ThemisOptions
from artist.policies.themis.policy import Themis
from artist.policies.themis.winners import Bid, greedy_winners
from artist.rng import FIRST_DRAWS, Draws
from artist.units import TICKS_PER_S as S
from artist.units import seconds


def themis(draws: Draws = FIRST_DRAWS, **options: object) -> Themis:
    plain = {"lease_s": 10, "period_s": 10, "fairness_knob": 0, "leftover": "worst-first"}
    return Themis(ThemisOptions.model_validate(plain | options), draws)


# -- rounds --------------------------------------------------------------------------


def test_at_the_end_of_a_lease_the_larger_gain_wins() -> None:
    jobs = [
        job("a", 0, 1, 30),  # at 10: log(10 + 10 + 20) - log(10 + 20) = log(40 / 30); 20-40
        job("b", 1, 1, 10),  # at 10: log(9 + 10 + 10) - log(9 + 10) = log(29 / 19): wins
    ]
    rows = run(themis(), [[1]], jobs)
    assert times(rows) == {"a": (0, 40), "b": (10, 20)}
    assert count(rows, "preemptions") == {"a": 1}


def test_a_winner_keeps_its_gpus() -> None:
    jobs = [
        job("a", 0, 1, 20),  # at 10: log(30 / 20)
        job("long", 1, 1, 1000),  # at 10: log(1019 / 1009)
    ]
    rows = run(themis(), [[1]], jobs)
    assert times(rows) == {"a": (0, 20), "long": (20, 1020)}
    assert count(rows, "preemptions") == count(rows, "migrations") == {}


def test_leases_are_auctioned_at_the_end_of_a_bidding_period() -> None:
    jobs = [
        job("a", 0, 1, 40),  # lease ends at 10, on offer at 15: log(50 / 40); 20-45
        job("b", 1, 1, 5),  # at 15: log(29 / 19); 15-20
    ]
    assert times(run(themis(period_s=15), [[1]], jobs)) == {"a": (0, 45), "b": (15, 20)}


def test_bidding_periods_count_from_the_first_arrival() -> None:
    jobs = [
        job("a", 4, 1, 40),  # lease ends at 14, on offer at 19: log(50 / 40); 24-49
        job("b", 5, 1, 5),  # at 19: log(29 / 19); 19-24
    ]
    assert times(run(themis(period_s=15), [[1]], jobs)) == {"a": (4, 49), "b": (19, 24)}


def test_bidding_periods_of_another_permutation_have_a_phase() -> None:
    draws = Draws(permutation=1)
    phase = draws.phase(15 * S)
    assert 0 < phase < 10 * S  # so the lease that ends at 10 is on offer one period later
    jobs = [job("a", 0, 1, 40 * S, compute_s=1e-9), job("b", 1, 1, 5)]
    assert times(run(themis(draws, period_s=15), [[1]], jobs))["b"][0] == seconds(phase + 15 * S)


def test_a_lease_that_ended_before_the_job_arrived_is_on_offer_in_the_same_period() -> None:
    jobs = [
        job("a", 0, 1, 20),  # lease ends at 4, on offer at 5: log(24 / 20); 10-25
        job("b", 4.5, 1, 5),  # at 5: log(9.5 / 5.5); 5-10
    ]
    assert times(run(themis(lease_s=4, period_s=5), [[1]], jobs)) == {"a": (0, 25), "b": (5, 10)}


def test_nothing_is_offered_while_no_job_waits() -> None:
    assert run(themis(), [[2]], [job("a", 0, 1, 95)]).questions == 2  # arrival and finish


def test_a_lease_is_at_least_one_iteration() -> None:
    jobs = [
        job("a", 0, 1, 2, compute_s=25.0),  # none done at 10 and 20; at 30: log(65 / 55); 35-60
        job("b", 1, 1, 5),  # at 30: log(44 / 34)
    ]
    rows = run(themis(), [[1]], jobs)
    assert times(rows) == {"a": (0, 60), "b": (30, 35)}


FOR_BIG_OR_TWO = [
    job("big", 0, 2, 8),  # rho without 18 / 8 = 2.25, the worst; gain log(18 / 8) on 2 GPUs
    job("p", 0, 1, 10),  # rho without 20 / 10; gain log(20 / 10) on 1 GPU
    job("q", 0, 1, 10),
]


@pytest.mark.parametrize(
    ("knob", "expected"),
    [
        (0.0, {"big": (10, 18), "p": (0, 10), "q": (0, 10)}),  # 2 log 2 > log 2.25
        (0.5, {"big": (0, 8), "p": (8, 18), "q": (8, 18)}),  # big and p bid: log 2.25 > log 2
        (0.8, {"big": (0, 8), "p": (8, 18), "q": (8, 18)}),  # one bidder
    ],
)
def test_the_fairness_knob_lets_only_the_worst_off_bid(knob: float, expected: dict) -> None:
    assert times(run(themis(fairness_knob=knob), [[2]], FOR_BIG_OR_TWO)) == expected


def test_the_number_of_bidders_is_not_rounded_up_because_of_floats() -> None:
    # Three of ten bid, although (1 - 0.7) x 10 > 3 in floats: q is the fourth, and with q's bid p
    # and q would win (2 log 2 > log 2.25).
    gang, rest = job("gang", 0, 2, 9), [job(f"r{i}", 0, 1, 100) for i in range(6)]
    jobs = [FOR_BIG_OR_TWO[0], gang, *FOR_BIG_OR_TWO[1:], *rest]
    assert times(run(themis(fairness_knob=0.7), [[2]], jobs))["big"] == (0, 8)


def test_leftovers_go_to_those_who_did_not_bid() -> None:
    rows = run(themis(fairness_knob=0.8), [[3]], FOR_BIG_OR_TWO)
    # One GPU is left beside big: p's and q's rho are equal, p arrived first.
    assert times(rows) == {"big": (0, 8), "p": (0, 10), "q": (8, 18)}


def test_random_leftovers_are_seeded() -> None:
    jobs = [job("big", 0, 1, 1), *(job(f"j{i}", 0, 1, 10) for i in range(6))]

    def second(seed: int) -> str:
        policy = themis(Draws(seed), fairness_knob=0.8, leftover="random")
        spans = times(run(policy, [[3]], jobs))
        return " ".join(name for name, (start, _) in spans.items() if start == 0)

    assert second(1) == second(1)
    assert len({second(seed) for seed in range(6)}) > 1


def test_an_elastic_job_runs_on_fewer_gpus_and_grows_at_the_end_of_its_lease() -> None:
    jobs = [
        job("a", 0, 2, 10, gpus_min=1),  # 0-10 on one GPU: 5 done; then 5 on two
        job("r", 0, 1, 5),  # log(15 / 5) on one GPU; a's log(20 / 10) needs two
    ]
    rows = run(themis(), [[2]], jobs)
    assert times(rows) == {"a": (0, 15), "r": (0, 5)}
    assert count(rows, "migrations") == {"a": 1}


def test_an_elastic_job_takes_more_than_it_asked_for_if_it_may() -> None:
    rows = run(themis(), [[4]], [job("a", 0, 2, 10, gpus_max=4)])
    assert times(rows) == {"a": (0, 5)}  # ten iterations are worth twenty on four GPUs


# -- the auction ---------------------------------------------------------------------

ELASTIC = ((1, math.log(2)), (2, math.log(3)))


def test_hidden_payment() -> None:
    bids = [Bid(0, ELASTIC), Bid(1, ELASTIC)]
    assert winners(bids, 3) == {0: 2, 1: 1}  # log 2 each, then log(3/2) to the earlier one
    # 0 takes from 1: prod V = 2 instead of 3, so it keeps 2/3 of 2 GPUs, 1. Without 1, 0 has
    # its 2 as well: 1 pays nothing.
    assert auction(bids, 3) == {0: 1, 1: 1}
    assert auction(bids, 4) == {0: 2, 1: 2}  # no job takes GPUs from the other


def test_a_gang_pays_nothing() -> None:
    assert auction([Bid(0, ((2, 1.0),)), Bid(1, ((2, 0.9),))], 3) == {0: 2}


def test_among_equal_products_the_first_bid_wins() -> None:
    two, one = ((2, math.log(2)),), ((1, math.log(2)),)
    assert winners([Bid(0, two), Bid(1, one)], 2) == {0: 2}
    assert winners([Bid(0, one), Bid(1, two)], 2) == {0: 1}


def test_one_large_bid_beats_a_denser_small_one() -> None:
    bids = [Bid(0, ((1, 0.5),)), Bid(1, ((10, 4.0),))]
    assert winners(bids, 10) == {1: 10}
    assert winners(bids, 11) == {0: 1, 1: 10}


def test_convex_gains_are_bid_for_as_a_whole() -> None:
    # 1 GPU is worth little, 3 are: the hull goes from 0 to 3 at once.
    assert winners([Bid(0, ((1, 0.1), (2, 0.2), (3, 3.0)))], 3) == {0: 3}
    assert winners([Bid(0, ((1, 0.1), (2, 0.2), (3, 3.0)))], 2) == {0: 2}


@st.composite
def bids_to_share(draw: st.DrawFn) -> tuple[list[Bid], int]:
    bids = []
    for handle in range(draw(st.integers(1, 4))):
        sizes = sorted(draw(st.sets(st.integers(1, 5), min_size=1, max_size=3)))
        gains = [draw(st.floats(0.01, 5)) for _ in sizes]
        bids.append(Bid(handle, tuple(zip(sizes, gains, strict=True))))
    return bids, draw(st.integers(1, 8))


def best(bids: list[Bid], gpus: int) -> float:
    if not bids:
        return 0.0
    options = [(0, 0.0), *bids[0].options]
    return max(gain + best(bids[1:], gpus - size) for size, gain in options if size <= gpus)


@given(bids_to_share())
def test_the_greedy_search_has_at_least_half_of_the_best_sum_of_gains(case) -> None:
    bids, gpus = case
    won = greedy_winners(bids, gpus)
    assert sum(won.values()) <= gpus
    total = sum(dict(bid.options)[won[bid.job]] for bid in bids if bid.job in won)
    assert total >= best(bids, gpus) / 2 - 1e-9


@pytest.mark.parametrize("largest_exact", [0, module.LARGEST_EXACT])
@given(bids_to_share())
def test_every_winner_keeps_gpus_and_none_gets_more_than_it_won(largest_exact, case) -> None:
    bids, gpus = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "LARGEST_EXACT", largest_exact)
        won, kept = winners(bids, gpus), auction(bids, gpus)
    assert kept.keys() == won.keys()
    assert all(kept[handle] <= won[handle] for handle in won)


# -- joint placements ------------------------------------------------------------------


def test_jobs_are_placed_together_the_largest_first() -> None:
    jobs = [job(f"j{i}", 0, gpus, 5) for i, gpus in enumerate((1, 2, 4))]
    view = question(simulator(themis(), [[2, 2], [2, 2]], jobs))
    placed = PackPlacer().joint(view, {0: 1, 1: 2, 2: 4})
    assert {handle: x.leaves for handle, x in placed.items()} == {2: (0, 1), 1: (2,), 0: (3,)}
