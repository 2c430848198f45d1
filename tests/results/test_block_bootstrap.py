"""Do intervals of days hold as often as they say, and within what a wait can do?"""

import numpy as np
import pytest

from artist.results.statistics.block_bootstrap import block_difference
from artist.results.statistics.compare_values import Verdict


def test_an_interval_of_days_holds_as_often_as_it_says() -> None:
    draws, inside, trials = np.random.default_rng(7), 0, 200
    for _ in range(trials):
        days = np.repeat(np.arange(8), 25)
        busy = draws.exponential(60.0, 8)[days]  # what jobs of a day have in common
        present = busy * draws.exponential(1.0, 200)
        changed = present + 5.0 + 0.3 * (busy - 60.0) * draws.exponential(1.0, 200)
        compared = block_difference(present, changed, days)
        inside += compared.low <= 5.0 <= compared.high
    # 95 %, less what the skew of eight days costs.
    assert 0.86 <= inside / trials <= 0.98


def test_fewer_than_five_days_give_no_interval() -> None:
    present = np.arange(8.0)
    assert block_difference(present, present + 1, [0, 0, 1, 1, 2, 2, 3, 3]).verdict is (
        Verdict.TOO_FEW
    )
    sure = block_difference(present, present + 1, range(8))
    assert (sure.low, sure.high, sure.verdict) == (1.0, 1.0, Verdict.MORE)


@pytest.mark.parametrize(("count", "least"), [(5, 0.85), (8, 0.87), (28, 0.88)])
def test_an_interval_of_the_ratio_covers_what_its_module_says(count: int, least: float) -> None:
    draws, inside, trials = np.random.default_rng(3), 0, 200
    for _ in range(trials):
        jobs = draws.poisson(40, count) + 1
        present = np.exp(draws.normal(0, 1, count)).repeat(jobs)
        changed = 0.4 * present * np.exp(draws.normal(-0.125, 0.5, count)).repeat(jobs)
        compared = block_difference(present, changed, np.arange(count).repeat(jobs))
        inside += compared.ratio_low <= 0.4 <= compared.ratio_high
    assert least <= inside / trials <= 0.97


def test_no_wait_falls_by_more_than_all_of_it() -> None:
    present = np.array([1.0, 2, 3, 400, 2, 1])
    compared = block_difference(present, 0.01 * present, range(6))
    assert compared.low < -compared.baseline  # of other days, the seconds may be more
    assert (compared.ratio_low, compared.ratio_high) == pytest.approx((0.01, 0.01))
    some = block_difference(present, np.array([0, 2, 0, 10, 0, 0.0]), range(6))
    assert 0 <= some.ratio_low < some.ratio_high <= 1


def test_days_without_waits_give_a_ratio_where_they_can() -> None:
    present, changed = np.array([0.0, 0, 0, 0, 0, 5]), np.array([0.0, 0, 0, 0, 0, 10])
    compared = block_difference(present, changed, range(6))
    assert (compared.ratio_low, compared.ratio_high) == (1, 2)
    new = block_difference(0 * present, changed, range(6))
    assert (new.ratio_low, new.ratio_high) == (1, np.inf)
    assert np.isnan(block_difference(-present, changed, range(6)).ratio_low)
