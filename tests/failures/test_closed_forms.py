"""Does a simulation agree with what theory says about failures? Within its own sampling error."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest
from failures.made import exponential, run_with_failures
from support import cluster, job, on

from artist.cluster.tree import regular
from artist.contract import Checkpoint
from artist.failures.checkpoints import daly_interval_s, daly_ratio, young_interval_s
from artist.results.failure_tables import JobCosts, job_costs, size_table
from artist.units import ticks


class Case(NamedTuple):
    """Machines of a job, mean time between failures of one, interval, cost and restart (s)."""

    machines: int
    mtbf_s: float
    interval_s: float
    cost_s: float
    restart_s: float


CASES = [
    Case(1, 36_000, 3600, 30, 0),
    Case(1, 36_000, 3600, 30, 600),
    Case(1, 7_200, 3600, 300, 600),
    Case(1, 3_600, 3600, 60, 0),
    Case(1, 100_000, 1800, 120, 60),
    Case(2, 36_000, 3600, 30, 600),
    Case(4, 50_000, 3600, 0, 300),
    Case(4, 50_000, 900, 60, 300),
    Case(8, 100_000, 2400, 240, 900),
    Case(16, 400_000, 3600, 30, 0),
]

INTERVALS = 20
"""The work of a job, in intervals between checkpoints; each ends with one, as in Daly's model."""


def simulated(case: Case, jobs: int, seed: int) -> JobCosts:
    """Jobs side by side, each with machines of its own that come back at once."""
    tree = regular(racks=jobs, machines_per_rack=case.machines, gpus_per_machine=1)
    iteration_s = 60.0
    wanted = [
        job(
            str(number),
            gpus=case.machines,
            iterations=round(INTERVALS * case.interval_s / iteration_s),
            compute_s=iteration_s,
            restart_s=case.restart_s,
        )
        for number in range(jobs)
    ]
    rows, failures = run_with_failures(
        tree,
        wanted,
        {"machine": exponential(case.mtbf_s)},
        interval_s=case.interval_s,
        cost_s=case.cost_s,
        seed=seed,
        check=False,
    )
    return job_costs(rows, failures.hazard)


def assert_equals(costs: JobCosts, expected: float) -> None:
    """The ratio of all time is the expected one within three standard errors, and these are small.

    The error of a ratio of sums, by the delta method.
    """
    ratio = float(costs.productive_s.sum() / costs.run_s.sum())
    rest = costs.productive_s - ratio * costs.run_s
    error = float(rest.std(ddof=1) / math.sqrt(len(rest)) / costs.run_s.mean())
    assert error < 0.01 * (1000 / len(rest)) ** 0.5
    assert abs(ratio - expected) < 3 * error + 1e-9, (ratio, expected, error)


def expected_ratio(case: Case) -> float:
    mttf_s = case.mtbf_s / case.machines
    return daly_ratio(case.interval_s, case.cost_s, case.restart_s, mttf_s)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_thousand_jobs_have_the_ratio_of_dalys_closed_form(case: Case) -> None:
    assert_equals(simulated(case, 1000, seed=1), expected_ratio(case))


@pytest.mark.parametrize("case", [CASES[2], CASES[5]], ids=str)
def test_a_few_jobs_have_the_ratio_of_dalys_closed_form(case: Case) -> None:
    assert_equals(simulated(case, 60, seed=1), expected_ratio(case))


def test_the_closed_form_of_one_interval_by_hand() -> None:
    # M = 1 h, one interval of 1 h, nothing else: (e - 1) hours for an hour of work.
    assert daly_ratio(3600, 0, 0, 3600) == pytest.approx(1 / (math.e - 1))
    # A restart of 1 h: each of the e - 1 attempts too many needs e times as long.
    assert daly_ratio(3600, 0, 3600, 3600) == pytest.approx(1 / (math.e * (math.e - 1)))


@pytest.mark.parametrize(
    ("machines", "jobs"), [(1, 100), (4, 32), pytest.param(16, 200, marks=pytest.mark.slow)]
)
def test_the_mean_time_to_failure_of_n_machines_is_1_over_n_r(machines: int, jobs: int) -> None:
    case = Case(machines, 20_000.0, 600.0, 0.0, 0.0)
    sizes = size_table(simulated(case, jobs, seed=2))
    failures = int(sizes["failures"][0])
    mttf_s, expected_s = sizes["mttf_s"][0], sizes["mttf_expected_s"][0]
    assert failures > 50
    assert expected_s == pytest.approx(20_000.0 / machines)
    # The number of failures is a Poisson number: the relative error of their mean time.
    assert abs(mttf_s / expected_s - 1) < 3 / math.sqrt(failures)


@pytest.mark.parametrize(("cost_s", "mttf_s"), [(30.0, 1e5), (300.0, 1e4), (5.0, 3600.0)])
def test_dalys_interval_is_the_one_that_loses_least(cost_s: float, mttf_s: float) -> None:
    near = daly_interval_s(cost_s, mttf_s) * np.linspace(0.9, 1.1, 2001)
    ratios = [daly_ratio(interval_s, cost_s, 60.0, mttf_s) for interval_s in near]
    assert int(np.argmax(ratios)) == pytest.approx(1000, abs=20)  # within 0.2 %


def test_youngs_interval_and_where_dalys_ends() -> None:
    assert young_interval_s(50.0, 10_000.0) == 1000.0
    assert daly_interval_s(300.0, 100.0) == 100.0
    assert daly_interval_s(0.0, 100.0) == 0.0


@pytest.mark.parametrize(("name", "best"), [("auto", daly_interval_s), ("young", young_interval_s)])
def test_auto_takes_the_failures_of_the_jobs_own_machines(name: str, best) -> None:
    _, failures = run_with_failures(
        cluster([8, 8]),
        [job("a")],
        {"machine": exponential(1e6)},
        interval_s="daly" if name == "auto" else name,
        cost_s=30.0,
    )
    of_two = failures.checkpoints(job("b", gpus=9), on({0: 8, 1: 1}))
    assert of_two == Checkpoint(ticks(best(30.0, 5e5)), ticks(30.0))


def test_auto_writes_no_checkpoint_where_nothing_fails() -> None:
    _, failures = run_with_failures(cluster([8]), [job("a")], {}, interval_s="auto", cost_s=30.0)
    assert failures.checkpoints(job("a"), on({0: 1})).interval is None


def test_a_job_says_its_own_interval_and_cost() -> None:
    _, failures = run_with_failures(cluster([8]), [job("a")], {}, interval_s=100.0, cost_s=30.0)
    own = job("b", checkpoint_interval_s=50.0)
    assert failures.checkpoints(own, on({0: 1})) == Checkpoint(ticks(50.0), ticks(30.0))
    both = job("c", checkpoint_interval_s=50.0, checkpoint_cost_s=1.0)
    assert failures.checkpoints(both, on({0: 1})) == Checkpoint(ticks(50.0), ticks(1.0))


def test_where_run_time_goes_adds_up() -> None:
    costs = simulated(CASES[2], 30, seed=3)
    assert np.all(costs.productive_s <= costs.run_s)
    work_s = INTERVALS * CASES[2].interval_s
    assert np.allclose(costs.productive_s, work_s, rtol=0, atol=1e-3)
