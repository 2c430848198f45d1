"""Is LAS foreground-background sharing? Compared with a count and with closed forms.

- Exact: leases and iterations last one second, jobs have one GPU and whole seconds. Then every
  second goes to the jobs with least attained service; among equals, to the earlier arrival. A
  count second by second must agree to the tick.
- Closed forms of two jobs under ideal sharing: a lease of one second meets them within a second.
- Sampled: the mean time that jobs of each length spend in an M/G/1 queue. The closed forms of one
  second less and one second more are its bounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from statistics import fmean, stdev

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import cluster, finishes, job, make_policy, run
from test_queueing import SEEDS, T

Jobs = Sequence[tuple[float, int]]
"""Arrival and length, in seconds."""


def las(servers: int, jobs: Jobs) -> list[float]:
    """Finish of each job, by the policy `las`."""
    named = [job(str(n), 1, length, arrival_s=at) for n, (at, length) in enumerate(jobs)]
    finish = finishes(run(cluster([servers]), named, make_policy("las", lease_s=1.0), lease_s=1.0))
    return [finish[str(n)] for n in range(len(jobs))]


def counted(servers: int, jobs: Jobs) -> list[float]:
    """Finish of each job, if each second goes to the jobs served least so far."""
    served, finish, now = [0] * len(jobs), [0.0] * len(jobs), 0
    while not all(finish):
        here = [n for n, (at, _) in enumerate(jobs) if at <= now and not finish[n]]
        for n in sorted(here, key=lambda n: (served[n], n))[:servers]:
            served[n] += 1
            if served[n] == jobs[n][1]:
                finish[n] = now + 1.0
        now += 1
    return finish


@settings(max_examples=150)
@given(
    st.integers(1, 3),
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 6)), min_size=1, max_size=8).map(sorted),
)
def test_every_second_goes_to_the_jobs_served_least(servers: int, jobs: Jobs) -> None:
    assert las(servers, jobs) == counted(servers, jobs)


@pytest.mark.parametrize(("first", "second"), list(product((5, 6, 9), (2, 4, 6, 12))))
@pytest.mark.parametrize("arrival", [1, 3])
def test_two_jobs_share_as_under_ideal_sharing(first: int, second: int, arrival: int) -> None:
    # The second job is alone until it has caught up with the `arrival` seconds of the first
    # one. Then both advance at half speed until the shorter one is done.
    if second <= arrival:
        ideal = (first + second, arrival + second)
    elif second <= first:
        ideal = (first + second, 2 * second)
    else:
        ideal = (2 * first, first + second)
    finish = las(1, [(0, first), (arrival, second)])
    assert max(abs(ours - theirs) for ours, theirs in zip(finish, ideal, strict=True)) <= 1
    assert max(finish) == first + second


SHORT, LONG, SHARE = 10, 60, 0.75
MEAN = SHARE * SHORT + (1 - SHARE) * LONG
LOAD = 0.5


def ideal_stay_s(length: float, others: float) -> float:
    """M/G/1 foreground-background (Kleinrock, Queueing Systems II, 1976, section 4.6).

    T(x) = lambda E[min(S, y)^2] / (2 (1 - rho_y)^2) + x / (1 - rho_y), rho_y = lambda E[min(S, y)]

    with y = x: before a job ends, every other job is served up to the job's own length. `others`
    is y, in seconds, and `length` is x.
    """
    rate = LOAD / MEAN
    short, long = min(SHORT, others), min(LONG, others)
    rho = rate * (SHARE * short + (1 - SHARE) * long)
    second_moment = SHARE * short**2 + (1 - SHARE) * long**2
    return rate * second_moment / (2 * (1 - rho) ** 2) + length / (1 - rho)


@pytest.mark.slow
def test_short_and_long_jobs_stay_as_long_as_in_an_mg1_queue_with_sharing() -> None:
    # Jobs take turns of one second, not of no time. So the ideal stay is only bounded. Least: each
    # other job is served up to one second less than the job's length before the job ends. Most:
    # up to the job's full length, and the second that has begun when the job arrives comes first.
    warm_up, measured = 200, 800
    stays: dict[int, list[float]] = {SHORT: [], LONG: []}
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        count = warm_up + measured
        arrivals = np.cumsum(rng.exponential(MEAN / LOAD, count)).tolist()
        lengths = np.where(rng.random(count) < SHARE, SHORT, LONG).tolist()
        finish = las(1, list(zip(arrivals, lengths, strict=True)))
        for length, means in stays.items():
            counted_jobs = [n for n in range(warm_up, count) if lengths[n] == length]
            means.append(fmean(finish[n] - arrivals[n] for n in counted_jobs))
    for length, means in stays.items():
        least = ideal_stay_s(length - 1, length - 1) + 1
        most = ideal_stay_s(length, length) + 1
        half = T * stdev(means) / math.sqrt(SEEDS)
        assert least - half < fmean(means) < most + half
        assert half < 0.25 * most
        # Under FIFO every job first waits for lambda E[S^2] / (2 (1 - rho)) = 21.7 s. There short
        # jobs stay longer than under LAS, and long jobs shorter.
        fifo = LOAD / MEAN * (SHARE * SHORT**2 + (1 - SHARE) * LONG**2) / (2 * (1 - LOAD)) + length
        assert (fmean(means) < fifo - half) if length == SHORT else (fmean(means) > fifo + half)
