"""Are arrivals after the end of a log drawn from its past, block by block?"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from support import job

from artist.experiments.recorded.later_arrivals import DAY_S, LaterArrivals
from artist.workload.job import Job

HOUR_S = 3600.0
MONDAY_S = 4 * DAY_S
"""1970 began on a Thursday."""


def at(*arrivals_s: float) -> list[Job]:
    return [job(f"j{nth}", 1, 1.0, arrival_s=x) for nth, x in enumerate(sorted(arrivals_s))]


def drawn(jobs: list[Job], now_s: float, horizon_s: float, seed: int = 0) -> list[float]:
    later = LaterArrivals(jobs, now_s, MONDAY_S)
    return [x for x, _ in later.draw(horizon_s, np.random.default_rng(seed))]


def test_jobs_come_at_the_hours_at_which_they_came() -> None:
    # Three days and ten hours, in each of which a job came at nine.
    jobs, now_s = at(*(day * DAY_S + 9 * HOUR_S for day in range(4))), 3 * DAY_S + 10 * HOUR_S
    for seed in range(5):
        found = drawn(jobs, now_s, 10 * DAY_S, seed)
        assert found == pytest.approx([day * DAY_S + 9 * HOUR_S for day in range(4, 14)])


def test_weekends_come_from_weekends() -> None:
    many = [day * DAY_S + n for day in range(21) if day % 7 < 5 for n in range(1, 11)]
    jobs = at(*many, *(day * DAY_S + 1 for day in range(21) if day % 7 >= 5))
    days = Counter(int(x // DAY_S) for x in drawn(jobs, 21 * DAY_S, 14 * DAY_S))
    assert days == {day: 10 if day % 7 < 5 else 1 for day in range(21, 35)}


def test_of_two_weeks_or_less_any_day_comes() -> None:
    jobs = at(*(day * DAY_S + n for day in range(3) for n in range(day + 1)))
    counts = Counter(int(x // DAY_S) for x in drawn(jobs, 3 * DAY_S, 100 * DAY_S))
    assert set(counts.values()) == {1, 2, 3}


def test_a_short_log_comes_in_tenths() -> None:
    jobs = at(*range(1000))
    found = drawn(jobs, 1000.0, 500.0)
    assert found[:100] == pytest.approx(range(1000, 1100))
    assert len(found) == 500


def test_nothing_comes_after_nothing() -> None:
    assert drawn(at(0.0), 0.0, 100.0) == []


def test_the_amount_of_future_work_is_as_uncertain_as_in_the_past() -> None:
    draws, inside, trials = np.random.default_rng(2), 0, 200
    for trial in range(trials):
        # Ten days, then three whose work is to be predicted. Half of the days are busy.
        counts = draws.poisson(20, 13) * draws.integers(1, 4, 13)
        past = [day + n / 1000 for day, count in enumerate(counts[:10]) for n in range(count)]
        jobs = at(*(DAY_S * x for x in past))
        comes = [len(drawn(jobs, 10 * DAY_S, 3 * DAY_S - 1, 50 * trial + x)) for x in range(49)]
        low, high = np.sort(comes)[[4, -5]]
        inside += low <= counts[10:].sum() <= high
    # Three standard errors of 200 trials are 8 %.
    assert 0.72 <= inside / trials <= 0.88
