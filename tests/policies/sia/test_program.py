"""Does Sia's program find the optimum of its authors' program, and of exhaustive search?"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from random import Random

import pytest
from rounds import Round, random_round

pytest.importorskip("scipy")

from artist.policies.sia.program import Offer, choose

OPTIMA = {
    int(row["seed"]): float(row["objective"])
    for row in csv.DictReader(Path(__file__).with_name("optima.csv").read_text().splitlines())
}
"""The objective of the authors' program (sia.py at aaf7a0d, cvxpy 1.9.3, CBC) for each round."""


def objective(chosen: Sequence[Offer | None], power: float = -0.5) -> float:
    """What is minimised; with p > 0 the negative of what is maximised."""
    sign = 1 if power < 0 else -1
    return sum(1.1 if offer is None else sign * offer.value**power for offer in chosen)


def rounded_offers(of: Round) -> list[list[Offer]]:
    """Offers whose costs have two decimals, as in the authors' program."""
    offers = []
    for row in of.rows:
        mine = []
        for key, value in row.values.items():
            factor = 1.0 if row.present in (None, key) else row.factor
            cost = round((value * factor) ** -0.5, 2)
            mine.append(Offer(*key, cost**-2))
        offers.append(mine)
    return offers


def assert_fits(chosen: Sequence[Offer | None], capacity: Sequence[int]) -> None:
    for kind, gpus in enumerate(capacity):
        assert sum(offer.gpus for offer in chosen if offer and offer.kind == kind) <= gpus


@pytest.mark.parametrize("seed", OPTIMA)
def test_the_objective_is_that_of_the_authors_program(seed: int) -> None:
    of = random_round(seed)
    chosen = choose(rounded_offers(of), of.capacity, -0.5, 1.1, 0.0)
    assert_fits(chosen, of.capacity)
    assert objective(chosen) == pytest.approx(OPTIMA[seed], rel=1e-9)


@pytest.mark.parametrize("power", [-2.0, -0.5, 0.5, 1.0])
def test_no_choice_is_better(power: float) -> None:
    draw = Random(3)
    for _ in range(8):
        capacity = [draw.randint(1, 6), draw.randint(1, 6)]
        offers = [
            [
                Offer(draw.randrange(2), draw.choice([1, 2, 3, 4]), draw.uniform(0.2, 6))
                for _ in range(draw.randint(0, 5))
            ]
            for _ in range(4)
        ]
        chosen = choose(offers, capacity, power, 1.1, 0.0)
        assert_fits(chosen, capacity)
        best = min(
            objective(choice, power)
            for choice in product(*[[None, *mine] for mine in offers])
            if all(
                sum(x.gpus for x in choice if x and x.kind == kind) <= gpus
                for kind, gpus in enumerate(capacity)
            )
        )
        assert objective(chosen, power) == pytest.approx(best)


def test_a_job_gets_no_gpus_where_a_restart_costs_more_than_waiting() -> None:
    assert choose([[Offer(0, 1, 0.0)]], [1], -0.5, 1.1, 0.0) == [None]
    assert choose([[Offer(0, 1, 0.5)]], [1], -0.5, 1.1, 0.0) == [None]  # 0.5^-0.5 = 1.41
    assert choose([[], [Offer(0, 1, 1.0)]], [1], -0.5, 1.1, 0.0) == [None, Offer(0, 1, 1.0)]


def test_of_equal_jobs_the_first_has_the_better_offer() -> None:
    offers = [Offer(0, 1, 1.0), Offer(1, 1, 3.0)]
    for jobs in (2, 5):
        chosen = choose([offers] * jobs, [1, 1], -0.5, 1.1, 0.0)
        assert chosen == [offers[1], offers[0], *[None] * (jobs - 2)]


def test_a_gap_bounds_what_is_lost() -> None:
    for seed in range(3):
        of = random_round(seed)
        offers = [[Offer(*key, value) for key, value in row.values.items()] for row in of.rows]
        exact = objective(choose(offers, of.capacity, -0.5, 1.1, 0.0))
        loose = objective(choose(offers, of.capacity, -0.5, 1.1, 0.01))
        saved = 1.1 * len(offers) - exact
        assert exact - 1e-9 <= loose <= exact + 0.02 * saved


def test_the_solver_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    """In this round HiGHS 1.12 would print a line of its own."""
    draw, offers = Random(16), list[list[Offer]]()
    for _ in range(draw.randint(10, 60)):
        gpus = draw.choice([1, 1, 2, 4, 4, 8])
        speeds = sorted(draw.choice([1, 1.5, 2, 3, 5, 9]) for _ in range(3))
        values = [gpus * x / speeds[0] * draw.choice([1, 0.9, 0.7]) for x in speeds]
        offers.append([Offer(kind, gpus, value) for kind, value in enumerate(values)])
    choose(offers, [24, 24, 16], -0.5, 1.1, 1e-4)
    assert capfd.readouterr() == ("", "")
