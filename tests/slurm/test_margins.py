"""Are intervals corrected by the errors of earlier ones, if these held too few starts?"""

from __future__ import annotations

import math

import numpy as np
import pytest

from artist.experiments.recorded.margins import Earlier, Margins, share_and_error

HORIZON_S = 1e6
NOW_S = 1e5


def earlier(starts_s: list[float], *, moments: int = 10, each: float = 1000.0) -> list[Earlier]:
    """At each moment an interval of (100, 150, 200) for each of these starts."""
    return [
        Earlier(nth * each, (100.0, 150.0, 200.0), HORIZON_S, 0.0, start_s)
        for nth in range(moments)
        for start_s in starts_s
    ]


def moved(past: list[Earlier], now_s: float = NOW_S) -> tuple[float, float, float]:
    return Margins(past, now_s).moved((1000.0, 1500.0, 2000.0), HORIZON_S, 0.0)


def test_what_came_late_moves_all_three_by_as_many_scales() -> None:
    # Each start was 300, 250 and 200 s after the three. The median is 150 s, they waited 400 s.
    shares = (300 / 550, 250 / 550, 200 / 550)
    assert Margins(earlier([400.0] * 10), NOW_S).shares == pytest.approx(shares)
    expected = [end + share * 1900 for end, share in zip((1000, 1500, 2000), shares, strict=True)]
    assert moved(earlier([400.0] * 10)) == pytest.approx(expected)


def test_late_jobs_that_were_expected_at_once_do_not_push_others_far() -> None:
    at_once = [
        Earlier(1000.0 * nth, (0.0, 0.0, 0.0), HORIZON_S, 1.0, 5000.0)
        for nth in range(10)
        for _ in range(2)
    ]
    # As shares of the cycle of 1 s alone, their delay would put the high end at the horizon.
    mean_s = (150 + 2 * 5000) / 3
    _, _, high = moved([*earlier([150.0]), *at_once])
    assert high == pytest.approx(2000 + 5000 / (1 + mean_s) * (1500 + mean_s))


def test_ends_are_moved_by_percentiles() -> None:
    starts_s = [300.0 + 10 * n for n in range(10)]
    # The first, fifth and ninth of ten starts, of which the mean is 345 s.
    shares = Margins(earlier(starts_s), NOW_S).shares
    assert shares == pytest.approx((200 / 495, 190 / 495, 180 / 495))


def test_nothing_moves_where_intervals_held() -> None:
    assert moved(earlier([150.0] * 4 + [400.0])) == (1000.0, 1500.0, 2000.0)


def test_nothing_moves_by_what_chance_makes() -> None:
    # 70 % held: 7 of 10 moments all, the others none, so that the error is 15 %.
    past = earlier([150.0] * 10, moments=7) + [
        Earlier(7000.0 + nth, (100.0, 150.0, 200.0), HORIZON_S, 0.0, 400.0)
        for nth in range(3)
        for _ in range(10)
    ]
    assert not any(Margins(past, NOW_S).shares)
    assert not any(Margins(earlier([400.0] * 10, moments=4), NOW_S).shares)


def test_only_what_was_known_by_then_counts() -> None:
    past = earlier([400.0] * 10)
    assert moved(past, now_s=0.0) == (1000.0, 1500.0, 2000.0)
    after = [Earlier(9600.0, (1.0, 2.0, 3.0), HORIZON_S, 0.0, 99.0)] * 99
    assert moved([*past, *after], now_s=9500.0) == moved(past)
    # Starts that have not come are later than all that came.
    low, _, high = moved(earlier([300.0, math.inf, math.inf]))
    assert low == pytest.approx(1000 + 200 / 450 * 1800)
    assert math.isinf(high)


def test_cancelled_jobs_waited_until_then() -> None:
    past = earlier([300.0] * 9)
    gone = [
        Earlier(1000.0 * nth, (100.0, 150.0, 200.0), HORIZON_S, 0.0, math.inf, gone_s=x)
        for nth, x in enumerate([50.0, 900.0] * 5)
    ]
    # One cancelled after 50 s says nothing; one after 900 s was later than all others.
    assert moved([*past, *gone[::2]]) == moved(past)
    assert Margins([*past, *gone[::2]], NOW_S).shares == Margins(past, NOW_S).shares
    assert math.isinf(Margins([*past, *gone[1::2] * 3], NOW_S).shares[2])


def test_the_error_counts_moments_not_jobs() -> None:
    assert share_and_error([[True] * 10, [False] * 10]) == pytest.approx((0.5, 0.5))
    assert share_and_error([[True, False]] * 10) == (0.5, 0.0)


def test_moved_intervals_hold_as_often_as_they_say_where_forecasts_are_wrong() -> None:
    draws, held = np.random.default_rng(4), []
    for _ in range(40):
        past = []
        for moment in range(30):
            # Starts are three times as late as the model says, and vary with the moment.
            scale = draws.lognormal(5.0, 1.0)
            together = draws.lognormal(0.0, 0.2)
            for _ in range(5):
                ends = scale * np.exp(np.array([-0.4, 0.0, 0.4]))
                start_s = 3 * scale * together * draws.lognormal(0.0, 0.3)
                interval_s = float(ends[0]), float(ends[1]), float(ends[2])
                past.append(Earlier(1e4 * moment, interval_s, HORIZON_S, 0.0, float(start_s)))
        *known, last = past
        low, _, high = Margins(known[:145], 1e6).moved(last.interval_s, HORIZON_S, 0.0)
        held.append(low <= last.start_s <= high)
    assert 0.6 <= np.mean(held) <= 1.0
