"""How often time-shifts must be set anew, against CASSINI's Fig. 17."""

from __future__ import annotations

import pytest

from studies.cassini.study.drift import JITTER, corrections_per_minute, is_off


def test_five_percent_of_the_ideal_iteration_is_too_far() -> None:
    assert not is_off(5, 100)
    assert is_off(6, 100)
    assert is_off(-6, 100)


@pytest.mark.parametrize(("period_s", "per_minute"), [(0.255, 2.0), (0.300, 1.7), (0.336, 1.6)])
def test_figure_17_under_two_corrections_a_minute_at_half_a_percent(
    period_s: float, per_minute: float
) -> None:
    assert JITTER == 0.005
    assert corrections_per_minute(period_s) == pytest.approx(per_minute, abs=0.1)


def test_more_jitter_means_more_than_two_a_minute() -> None:
    assert corrections_per_minute(0.300, 0.006) > 2.2


def test_corrections_grow_with_the_square_of_jitter() -> None:
    once, twice = (corrections_per_minute(0.3, x, hours=100) for x in (0.0025, 0.005))
    assert twice / once == pytest.approx(4, rel=0.15)


def test_without_jitter_there_are_none() -> None:
    assert corrections_per_minute(0.3, 0.0) == 0.0
