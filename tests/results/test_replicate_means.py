"""Do means and intervals of replicates agree with other results, and stay within bounds?"""

from __future__ import annotations

from math import exp, isnan, log, sqrt
from statistics import fmean, stdev

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from artist.results.statistics.compare_values import compare_values
from artist.results.statistics.replicate_means import are_geometric, replicate_mean, replicate_means

MAKESPANS_D = [5.99, 115.95, 5.6, 6.1, 4.88]
"""One of five runs is twenty times the others."""


def test_a_geometric_mean_by_hand() -> None:
    logs = [log(value) for value in MAKESPANS_D]
    reach = 2.776445 * stdev(logs) / sqrt(5)
    told = replicate_mean(MAKESPANS_D, geometric=True)
    assert told == pytest.approx([exp(fmean(logs) + x) for x in (0, -reach, reach)], rel=1e-6)
    assert told.mean == pytest.approx(10.3, abs=0.05)
    assert told.low > 0
    assert replicate_mean(MAKESPANS_D, geometric=False).low < 0  # why it is not arithmetic


@given(st.lists(st.floats(1e-3, 1e6), min_size=5, max_size=12))
def test_an_interval_of_a_positive_metric_is_positive(values: list[float]) -> None:
    mean, low, high = replicate_mean(values, geometric=True)
    assert isnan(low) or 0 < low <= mean * (1 + 1e-9) <= high * (1 + 1e-9)


def test_the_quotient_of_two_means_is_the_ratio_of_a_comparison() -> None:
    other = [value * by for value, by in zip(MAKESPANS_D, (2, 3, 1, 1, 5), strict=True)]
    means = replicate_means({"fifo": MAKESPANS_D, "las": other})
    assert means["las"] / means["fifo"] == pytest.approx(compare_values(MAKESPANS_D, other).ratio)


def test_a_zero_makes_all_means_that_are_shown_together_arithmetic() -> None:
    means = replicate_means({"fifo": [0.0, 2.0], "las": [1.0, 4.0]})
    assert means == {"fifo": 1.0, "las": 2.5}
    assert not are_geometric([1.0, 0.0])


def test_few_replicates_and_copies_of_one_have_no_interval() -> None:
    for values in (MAKESPANS_D[:4], [3.0] * 6, list(3.0 * (1 + 1e-14 * np.arange(6)))):
        told = replicate_mean(values, geometric=True)
        assert isnan(told.low) and isnan(told.high)
    assert replicate_mean([3.0] * 6, geometric=True).mean == 3.0
    # Two permutations of each seed are one replicate.
    assert isnan(replicate_mean(MAKESPANS_D * 2, [0, 0, 1, 1, 2, 2, 3, 3, 3, 3], geometric=True)[1])


def test_an_interval_holds_as_often_as_it_says() -> None:
    draws = np.random.default_rng(4).lognormal(0.0, 1.0, (400, 5))
    every = [replicate_mean(list(values), geometric=True) for values in draws]
    assert 0.92 <= fmean(one.low <= 1 <= one.high for one in every) <= 0.98
