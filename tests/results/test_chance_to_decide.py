"""Do as many replicates as a comparison asks for decide it as often as is said?"""

from __future__ import annotations

import numpy as np
import pytest

from artist.results.statistics.chance_to_decide import CHANCE, Open
from artist.results.statistics.compare_values import ComparedValues, compare_values
from artist.results.statistics.holm import holm

SCATTER = 0.1
TRIALS = 300


def first_steps(count: int, mean: float) -> np.ndarray:
    """Steps of this mean and of the deviation `SCATTER`."""
    steps = np.random.default_rng(1).standard_normal(count)
    return mean + SCATTER * (steps - steps.mean()) / steps.std(ddof=1)


SURE = compare_values(np.ones(8), np.exp(0.5 + first_steps(8, 0.0)))
EQUAL = compare_values(np.ones(8), np.exp(0.01 * first_steps(8, 0.0)))


def judged(steps: np.ndarray, others: int) -> ComparedValues:
    """The verdict on them among others: half surely differ, half surely do not."""
    one = compare_values(np.ones(len(steps)), np.exp(steps))
    return holm([one, *[SURE, EQUAL] * (others // 2)])[0]


@pytest.mark.parametrize(("mean", "others"), [(0.05, 0), (0.08, 10), (0.0, 2)])
def test_the_predicted_replicates_decide_in_eighty_percent_of_cases(
    mean: float, others: int
) -> None:
    """If the true mean and scatter are those of the first eight replicates."""
    first = first_steps(8, mean)
    one = judged(first, others)
    assert one.verdict == "undecided"
    assert one.enough is not None
    rng = np.random.default_rng(8)
    drawn = rng.normal(mean, SCATTER, (TRIALS, one.enough - len(first)))
    decided = sum(judged(np.append(first, more), others).verdict != "undecided" for more in drawn)
    # Four standard errors for this many trials, and the step from a whole number to the next.
    assert CHANCE - 0.09 < decided / TRIALS < CHANCE + 0.12


def test_one_more_just_below_the_bound_is_no_promise() -> None:
    """t = 2.36 with 8 replicates is short of 2.365 by a hair, and one more may as well lower it."""
    just_short = first_steps(8, 2.36 * SCATTER / np.sqrt(8))
    one = judged(just_short, 0)
    assert one.soonest == 9
    assert one.enough is not None
    assert one.enough > 9


def test_what_others_leave_undecided_asks_for_more() -> None:
    """Holm holds each against the level of the first that does not pass."""
    first = first_steps(8, 0.05)
    alone, among = judged(first, 0).enough, judged(first, 10).enough
    assert alone is not None
    assert among is not None
    assert among > alone
    near = [compare_values(np.ones(8), np.exp(first * share)) for share in (1, 1 + 1e-9)]
    one, other = holm(near)
    assert one.enough == other.enough


def test_the_chance_by_hand() -> None:
    """One more step: no chi-square is left, so the steps that decide are those above a bound."""
    chance = Open(2.0, 2.0, 5, 0.0, 0.95, 0.9).chance(6)
    # mean = 2 + z / 3, squares = 4 (4 + 5/6 z^2); t = mean sqrt(30 / squares) > 2.5706
    z = np.random.default_rng(3).standard_normal(200_000)
    t = (2 + z / 3) * np.sqrt(30 / (4 * (4 + 5 / 6 * z**2)))
    assert chance == pytest.approx((t > 2.5706).mean(), abs=0.02)
