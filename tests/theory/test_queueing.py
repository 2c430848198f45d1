"""Does the simulator agree with the closed forms of queueing theory?

Each test compares a mean over independent seeds with a formula, within a 99 % confidence
interval. The seeds are fixed, so a test that passes once cannot fail by chance later.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import fmean, stdev
from typing import Any

import numpy as np
import pytest
from support import Rates, S, cluster, job, make_policy, rate

from artist.contract import RateFunction
from artist.engine.rows import JobRow
from artist.engine.simulator import Simulator
from artist.estimates.backends import NoCommunication
from artist.network.rates.isolated import AloneRates

SEEDS = 15
T = 2.977  # 99 % quantile of |t| with 14 degrees of freedom
WARM_UP = 300
MEASURED = 2000

Draw = Callable[[np.random.Generator, int], np.ndarray]


def exponential(mean_s: float) -> Draw:
    return lambda rng, count: rng.exponential(mean_s, count)


def constant(value_s: float) -> Draw:
    return lambda rng, count: np.full(count, value_s)


def simulated(
    seed: int, servers: int, interarrival: Draw, service: Draw, rates: RateFunction | None = None
) -> list[JobRow]:
    """Rows under FIFO of the jobs that arrived after the warm-up. Each job has one GPU."""
    rng = np.random.default_rng(seed)
    count = WARM_UP + MEASURED
    arrivals = np.cumsum(interarrival(rng, count)).tolist()
    lengths = service(rng, count).tolist()
    jobs = [
        job(str(n), iterations=1, arrival_s=arrival, compute_s=length)
        for n, (arrival, length) in enumerate(zip(arrivals, lengths, strict=True))
    ]
    tree = cluster([servers])
    rates = rates or AloneRates(tree, NoCommunication().estimate)
    rows = Simulator(tree, jobs, rates).run(make_policy("fifo"))
    return [row for row in rows.jobs if row.handle >= WARM_UP]


def assert_mean(theory: float, measure: Callable[[list[JobRow]], float], *arguments: Any) -> None:
    """The theoretical value lies in the confidence interval, and the interval is narrow."""
    means = [measure(simulated(seed, *arguments)) for seed in range(SEEDS)]
    half = T * stdev(means) / math.sqrt(len(means))
    assert abs(fmean(means) - theory) < half
    assert half < 0.25 * theory


def mean_wait_s(rows: list[JobRow]) -> float:
    return fmean((row.start - row.arrival) / S for row in rows)


def mean_sojourn_s(rows: list[JobRow]) -> float:
    return fmean((row.finish - row.arrival) / S for row in rows)


def erlang_c(servers: int, offered: float) -> float:
    """Probability that an arrival waits: B from its recursion, then C = B / (1 - rho (1 - B))."""
    blocked = 1.0
    for count in range(1, servers + 1):
        blocked = offered * blocked / (count + offered * blocked)
    return blocked / (1 - offered / servers * (1 - blocked))


def test_erlang_c_of_a_single_server_is_its_load() -> None:
    assert erlang_c(1, 0.7) == pytest.approx(0.7)
    assert erlang_c(2, 1.0) == pytest.approx(1 / 3)  # M/M/2 at half load: 2 rho^2 / (1 + rho)


@pytest.mark.parametrize(("servers", "load"), [(4, 0.7), (10, 0.75)])
def test_fifo_with_exponential_jobs_waits_as_in_an_mmc_queue(servers: int, load: float) -> None:
    # Mean wait of M/M/c: C(c, a) / (c mu - lambda), with mu = 1/100 per second.
    arrivals_per_s = load * servers / 100
    theory = erlang_c(servers, load * servers) / (servers / 100 - arrivals_per_s)
    interarrival = exponential(1 / arrivals_per_s)
    assert_mean(theory, mean_wait_s, servers, interarrival, exponential(100.0))


@pytest.mark.slow
def test_fifo_with_equal_jobs_waits_half_as_long_as_with_exponential_ones() -> None:
    # Pollaczek-Khinchine for M/D/1: rho / (2 mu (1 - rho)) = 0.6 x 100 / 0.8.
    assert_mean(75.0, mean_wait_s, 1, exponential(100 / 0.6), constant(100.0))


@pytest.mark.slow
def test_re_rated_jobs_stay_as_long_as_under_processor_sharing() -> None:
    # M/G/1-PS: mean stay = mean service / (1 - rho), even of equal jobs (FIFO: 175); rho = 0.6.
    # Running jobs share the speed of one server: every arrival and finish re-rates all of them.
    sharing = Rates(
        lambda now, running: {
            handle: rate(view.job.compute_s * len(running)) for handle, view in running.items()
        }
    )
    interarrival, service = exponential(100 / 0.6), constant(100.0)
    assert_mean(250.0, mean_sojourn_s, 200, interarrival, service, sharing)


def test_more_gpus_than_jobs_never_wait() -> None:
    rows = simulated(0, 2000, exponential(1.0), exponential(100.0))
    assert mean_wait_s(rows) == 0.0
