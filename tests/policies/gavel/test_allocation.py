"""Are shares of time optimal, by the authors' program, by hand and in closed form?"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import KINDS, PRICES, instance
from scipy.optimize import linprog

from artist.policies.gavel.allocation import (
    Jobs,
    Optimum,
    agnostic,
    equal_part,
    fairest,
    isolated,
    least_attained_service,
    makespan,
    max_min,
    per_cost,
)
from artist.policies.gavel.cones import Floats
from artist.policies.gavel.interior_point import inner_max_min


def rows_of(name: str) -> list[dict[str, str]]:
    lines = (Path(__file__).parent / name).read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


OPTIMA, INNER = rows_of("optima.csv"), rows_of("inner.csv")


def jobs_of(speeds: list[list[float]], gpus: list[float], capacity: list[float]) -> Jobs:
    return Jobs(np.array(speeds), np.array(gpus), np.array(capacity))


def gets(jobs: Jobs, found: Optimum) -> Floats:
    return np.asarray((jobs.speeds * found.shares).sum(axis=1))


def assert_possible(jobs: Jobs, found: Optimum) -> None:
    shares = found.shares
    assert (shares >= 0).all() and (shares.sum(axis=1) <= 1 + 1e-9).all()
    assert (jobs.gpus @ shares <= jobs.capacity * (1 + 1e-9)).all()
    assert not shares[jobs.speeds == 0].any()


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, id=row["seed"], marks=[pytest.mark.slow] * (number % 3 > 0))
        for number, row in enumerate(OPTIMA)
    ],
)
def test_optima_are_those_of_the_authors_program(row: dict[str, str]) -> None:
    jobs, steps, waited_s = instance(int(row["seed"]))
    alike = jobs._replace(speeds=agnostic(jobs.speeds))
    found = {
        "las": least_attained_service(jobs),
        "las_agnostic": least_attained_service(alike),
        "ftf": fairest(jobs, steps, waited_s, steps / isolated(jobs)),
        "makespan_s": makespan(jobs, steps),
        "cost": per_cost(jobs, PRICES),
    }
    for name, optimum in found.items():
        assert optimum.value == pytest.approx(float(row[name]), rel=1e-6), name
        assert_possible(alike if name == "las_agnostic" else jobs, optimum)
    reached = jobs.gpus * gets(jobs, found["las"]) / equal_part(jobs)
    assert reached.min() == pytest.approx(found["las"].value, rel=1e-6)
    assert (steps / gets(jobs, found["makespan_s"])).max() == pytest.approx(
        found["makespan_s"].value, rel=1e-6
    )


def test_there_are_as_many_instances_as_were_compared() -> None:
    assert len(OPTIMA) == 150 and len(KINDS) == 3


def test_two_jobs_that_prefer_different_kinds_get_them() -> None:
    jobs = jobs_of([[3, 1], [1, 3]], [1, 1], [1, 1])
    found = least_attained_service(jobs)
    assert found.value == pytest.approx(3 / 2)
    assert np.allclose(found.shares, np.eye(2))


def test_makespan_of_two_jobs_on_two_kinds_by_hand() -> None:
    # Job 0 gets 1 + a and job 1 gets 4 - 3 a, if a is the share of job 0 on kind 0: equal at .75.
    found = makespan(jobs_of([[2, 1], [4, 1]], [1, 1], [1, 1]), np.array([10.0, 10.0]))
    assert found.value == pytest.approx(10 / 1.75)
    assert found.shares[0, 0] == pytest.approx(0.75)


def test_finish_time_fairness_of_two_jobs_on_one_gpu_by_hand() -> None:
    # Both want 10 s of it, one came 10 s ago. In isolation each takes 20 s:
    # 10 + 10 / x = 10 / (1 - x), so x = (1 + sqrt(5)) / 2 - 1.
    found = fairest(
        jobs_of([[1], [1]], [1, 1], [1]),
        np.array([10.0, 10.0]),
        np.array([10.0, 0.0]),
        np.array([20.0, 20.0]),
    )
    share = (5**0.5 - 1) / 2
    assert found.shares[:, 0] == pytest.approx([share, 1 - share], rel=1e-6)
    assert found.value == pytest.approx((10 + 10 / share) / 20)


def test_cheap_gpus_serve_cost_if_speed_does_not_make_up_for_the_price() -> None:
    jobs = jobs_of([[1, 3]], [1], [1, 1])
    assert per_cost(jobs, np.array([1.0, 4.0])).shares.tolist() == [[1.0, 0.0]]
    assert per_cost(jobs, np.array([1.0, 2.0])).shares.tolist() == [[0.0, 1.0]]


def test_a_job_alone_has_its_fastest_kind_all_the_time() -> None:
    found = least_attained_service(jobs_of([[1, 5, 2]], [2], [4, 4, 4]))
    assert found.shares.tolist() == [[0.0, 1.0, 0.0]]


def test_gpus_that_the_least_served_cannot_use_serve_others() -> None:
    # Job 0 only runs on kind 0, where it needs all; job 1 could be as slow, and need not be.
    found = max_min(jobs_of([[1, 0], [1, 9]], [1, 1], [1, 1]), np.array([1.0, 1.0]))
    assert found.value == pytest.approx(1.0)
    assert found.shares[1, 1] == pytest.approx(1.0)


def test_what_the_least_served_leave_goes_where_a_gpu_gains_most_however_many_are_alike() -> None:
    # The last job gains .1 of its need on its own kind. So do the others at least, on two GPUs.
    jobs = jobs_of([[3, 0], [2, 0], [3, 0], [0, 0.1]], [1, 1, 1, 1], [2, 1])
    found = max_min(jobs, np.ones(4))
    assert found.value == pytest.approx(0.1)
    assert found.shares[:, 0] == pytest.approx([0.975, 0.05, 0.975, 0])


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from([1.0, 2.0, 4.0]), min_size=1, max_size=12), st.sampled_from([4.0, 9.0])
)
def test_one_kind_is_max_min_fair_in_gpu_time(gpus: list[float], capacity: float) -> None:
    """Every job has as much GPU time as the others, or all of its own."""
    jobs = jobs_of([[7.0]] * len(gpus), gpus, [capacity])
    found = least_attained_service(jobs)
    assert found.value == pytest.approx(min(capacity / len(gpus), min(gpus)))
    assert_possible(jobs, found)
    # The programs, with a second kind that nobody can use, have the same optima.
    unusable = jobs_of([[7.0, 0.0]] * len(gpus), gpus, [capacity, 1.0])
    solved = max_min(unusable, equal_part(jobs) / jobs.gpus)
    assert solved.value == pytest.approx(found.value)
    sums = [float(jobs.gpus @ x.shares[:, 0]) for x in (found, solved)]
    assert sums[0] == pytest.approx(sums[1])


def same_as_the_whole_program(jobs: Jobs, needs: Floats) -> Optimum:
    """The answer of `max_min`, whose two optima are those of the program of all jobs."""
    found = max_min(jobs, needs)
    assert_possible(jobs, found)
    least, total = whole(jobs, needs)
    got = gets(jobs, found) / needs
    assert [found.value, got.min()] == pytest.approx([least, least], rel=1e-6)
    assert got.sum() == pytest.approx(total, rel=1e-6)
    return found


def whole(jobs: Jobs, needs: Floats) -> tuple[float, float]:
    """The largest least and the largest sum beside it, with a row for every job."""
    count, kinds = jobs.speeds.shape
    gains = np.zeros((count, count * kinds + 1))
    for job, row in enumerate(jobs.speeds / needs[:, None]):
        gains[job, job * kinds : (job + 1) * kinds] = row
    rows = np.kron(np.eye(count), np.ones(kinds)), np.kron(jobs.gpus, np.eye(kinds))
    space = np.column_stack([np.vstack(rows), np.zeros(count + kinds)])
    limits = [*np.ones(count), *jobs.capacity]
    z = np.zeros(count * kinds + 1)
    z[-1] = 1.0
    first = linprog(-z, A_ub=np.vstack([space, z - gains]), b_ub=[*limits, *np.zeros(count)])
    floor = np.full(count, first.fun * (1 - 1e-9))
    second = linprog(-gains.sum(axis=0), A_ub=np.vstack([space, -gains]), b_ub=[*limits, *floor])
    return -first.fun, -second.fun


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=[pytest.mark.slow] * (seed > 9)) for seed in range(150)]
)
def test_alike_jobs_share_equally_and_nothing_is_lost(seed: int) -> None:
    jobs, steps, _ = instance(seed)
    draw = np.random.default_rng(seed)
    copies = draw.integers(0, min(len(steps), 6), 60)  # few kinds of jobs, in any order
    jobs = jobs._replace(speeds=jobs.speeds[copies], gpus=jobs.gpus[copies])
    needs = (steps[copies] if seed % 3 else equal_part(jobs)) / jobs.gpus
    found = same_as_the_whole_program(jobs, needs)
    for one in {*copies.tolist()}:
        assert len(np.unique(found.shares[copies == one], axis=0)) == 1


@settings(max_examples=100)
@given(
    st.lists(
        st.tuples(
            st.tuples(*[st.sampled_from([0.0, 1.0, 2.0, 3.0, 5.0])] * 3).filter(any),
            st.sampled_from([1.0, 2.0, 4.0]),
            st.floats(0.5, 2.0),
        ),
        min_size=1,
        max_size=8,
    ),
    st.tuples(*[st.sampled_from([4.0, 5.0, 8.0])] * 3),
)
def test_shortcuts_where_gpus_do_not_lack_lose_nothing(
    drawn: list[tuple[tuple[float, ...], float, float]], capacity: tuple[float, ...]
) -> None:
    """Few jobs: all on their best kinds, or as much as the neediest alone could have, or less."""
    speeds, gpus, needs = (np.array(column) for column in zip(*drawn, strict=True))
    jobs = Jobs(speeds, gpus, np.array(capacity))
    same_as_the_whole_program(jobs, needs)


@pytest.mark.parametrize("seed", range(6))
def test_no_allocation_is_fairer_where_many_jobs_want_few_gpus(seed: int) -> None:
    jobs, steps, waited_s = instance(seed)
    many = np.tile(np.arange(len(steps)), 5)
    draw = np.random.default_rng(seed)
    jobs = jobs._replace(speeds=jobs.speeds[many], gpus=jobs.gpus[many])
    steps, waited_s = steps[many] * draw.uniform(0.01, 2, len(many)), waited_s[many]
    isolated_s = waited_s + steps / isolated(jobs)
    found = fairest(jobs, steps, waited_s, isolated_s)
    needs = [steps / (found.value * part * isolated_s - waited_s) for part in (1 - 1e-6, 1 + 1e-6)]
    assert max_min(jobs, needs[0]).value < 1 < max_min(jobs, needs[1]).value
    reached = (waited_s + steps / gets(jobs, found)) / isolated_s
    assert reached.max() == pytest.approx(found.value, rel=1e-6)


# -- the optimum at which an interior point method ends ----------------------------------


def inner(jobs: Jobs, needs: Floats) -> Floats:
    alone = np.ones(len(jobs.gpus))
    found = inner_max_min(jobs.speeds / needs[:, None], jobs.gpus, jobs.capacity, alone)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("objective", "seed"), sorted({(row["objective"], row["seed"]) for row in INNER})
)
def test_shares_are_those_at_which_ecos_ends(objective: str, seed: str) -> None:
    rows = [row for row in INNER if (row["objective"], row["seed"]) == (objective, seed)]
    expected = [[float(row[kind]) for kind in KINDS] for row in rows]
    jobs, steps, waited_s = instance(int(seed))
    if objective == "las":
        found = least_attained_service(jobs, inner=True)
    else:
        found = fairest(jobs, steps, waited_s, steps / isolated(jobs), inner=True)
    assert found.shares == pytest.approx(np.array(expected), abs=1e-3)


def test_a_job_has_equal_kinds_for_equal_times() -> None:
    assert inner(jobs_of([[1, 1]], [1], [4, 4]), np.ones(1)) == pytest.approx(0.5)


def test_equal_jobs_count_as_one_of_their_number() -> None:
    speeds, gpus = [[1, 3], [2, 2], [2, 2], [2, 2], [5, 4]], [1, 2, 2, 2, 4]
    jobs = jobs_of(speeds, gpus, [4, 3])
    one, of = [0, 1, 4], [0, 1, 1, 1, 2]
    found = inner_max_min(
        jobs.speeds[one], jobs.gpus[one], jobs.capacity, np.array([1.0, 3.0, 1.0])
    )
    assert found is not None
    assert found[of] == pytest.approx(inner(jobs, np.ones(5)), abs=1e-6)


@pytest.mark.parametrize("seed", range(0, 150, 10))
def test_fair_shares_inside_are_as_fair_in_any_units(seed: int) -> None:
    jobs, steps, waited_s = instance(seed)
    isolated_s = steps / isolated(jobs)
    found = fairest(jobs, steps, waited_s, isolated_s, inner=True)
    assert_possible(jobs, found)
    assert found.value == pytest.approx(fairest(jobs, steps, waited_s, isolated_s).value, rel=1e-6)
    units = np.linspace(0.1, 7, len(steps))
    same = jobs._replace(speeds=jobs.speeds * units[:, None])
    again = fairest(same, steps * units, waited_s, isolated_s, inner=True)
    assert again.shares == pytest.approx(found.shares, abs=5e-3)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("steps", "waited_s"),
    [((1e-3, 1e3), (1e5, 0.0)), ((723.69, 22.74), (330929.0, 1462372.0)), ((1, 1e3), (2000, 100))],
)
def test_fair_shares_inside_are_fair_however_long_jobs_have_waited(
    steps: tuple[float, float], waited_s: tuple[float, float]
) -> None:
    jobs = jobs_of([[1], [1]], [1, 1], [1])
    left, waited = np.array(steps), np.array(waited_s)
    inside, vertex = (
        fairest(jobs, left, waited, left / isolated(jobs), inner=x) for x in (True, False)
    )
    assert inside.value == pytest.approx(vertex.value)
    assert_possible(jobs, inside)


def test_where_the_search_gets_stuck_shares_are_a_vertex(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("artist.policies.gavel.interior_point._MOST_STEPS", 2)
    jobs, steps, waited_s = instance(9)
    stuck, vertex = (least_attained_service(jobs, inner=x) for x in (True, False))
    assert (stuck.shares == vertex.shares).all()
    isolated_s = steps / isolated(jobs)
    fair, least = (fairest(jobs, steps, waited_s, isolated_s, inner=x) for x in (True, False))
    assert fair.value == pytest.approx(least.value)


def test_shares_of_attained_service_can_be_inside() -> None:
    # Job 1 needs a quarter of kind 1 for what job 0 gets, and may have all of it.
    jobs = jobs_of([[1, 0], [0, 4]], [1, 2], [1, 3])
    found = least_attained_service(jobs, inner=True)
    assert found.shares == pytest.approx(inner(jobs, equal_part(jobs) / jobs.gpus), abs=1e-6)
    assert found.value == pytest.approx(least_attained_service(jobs).value)
    assert 0.25 < found.shares[1, 1] < 1
    assert least_attained_service(jobs).shares == pytest.approx(np.eye(2))


def test_fair_shares_are_as_if_a_kind_without_gpus_were_not_there() -> None:
    jobs = jobs_of([[9, 2], [1, 1], [0, 1]], [1, 2, 2], [0, 3])
    there = jobs._replace(speeds=jobs.speeds[:, 1:], capacity=jobs.capacity[1:])
    steps, waited_s = np.array([100.0, 100.0, 50.0]), np.array([0.0, 10.0, 20.0])
    isolated_s = steps / isolated(there)
    found, alone = (fairest(x, steps, waited_s, isolated_s, inner=True) for x in (jobs, there))
    assert_possible(jobs, found)
    assert found.value == pytest.approx(alone.value)
    assert found.shares[:, 1:] == pytest.approx(alone.shares, abs=1e-6)
    assert not found.shares[:, 0].any()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_inner_shares_are_an_optimum_and_serve_equal_jobs_equally(seed: int) -> None:
    draw = np.random.default_rng(seed)
    count, kinds = int(draw.integers(1, 30)), int(draw.integers(1, 4))
    speeds = draw.uniform(0.1, 10, (count, kinds)) * (draw.random((count, kinds)) > 0.2)
    speeds[speeds.max(axis=1) == 0] = 1.0
    jobs = Jobs(speeds, draw.choice([1.0, 2.0, 4.0], count), draw.choice([4.0, 8.0, 30.0], kinds))
    jobs = jobs._replace(speeds=np.tile(speeds, (2, 1)), gpus=np.tile(jobs.gpus, 2))
    if seed % 3 == 0:
        jobs = jobs._replace(speeds=agnostic(jobs.speeds))
    best = max_min(jobs, np.ones(2 * count))
    found = fairest(jobs, np.ones(2 * count), np.zeros(2 * count), np.ones(2 * count), inner=True)
    assert_possible(jobs, found)
    assert gets(jobs, found).min() == pytest.approx(best.value, rel=5e-5)
    assert (found.shares[:count] == found.shares[count:]).all()
