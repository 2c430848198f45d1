"""Do `easy` and `conservative` do what their rules say? Compared with `naive_backfill.py`.

Every stay of every job must agree, as in `test_naive_classics.py`. Is a reservation kept?
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import naive_backfill
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import Stay
from random_cases import random_case
from support import CASES
from test_naive_classics import Case, cases, naive_cluster, simulated, slowdown

POLICIES = ["easy", "conservative"]
OPTIONS = {
    "order": ["arrival", "length", "remaining", "area", "service"],
    "estimates": ["exact", "factor:0.4", "factor:1", "factor:2.5", "limit", "learned"],
    "placement": ["pack", "any", "consolidate-or-wait"],
}


def with_limits(case: Case, rng: Random) -> Case:
    """Three users, and time limits in whole seconds, some of them too short."""
    return case._replace(
        jobs=[
            replace(
                job,
                user=rng.choice("abc"),
                hints={"hint_time_limit_s": str(rng.choice([1, 2, 5, 5, 10, 30]))},
            )
            for job in case.jobs
        ]
    )


def without_some(case: Case, rng: Random) -> Case:
    """Some jobs without a limit."""
    return case._replace(
        jobs=[replace(job, hints={}) if rng.random() < 0.3 else job for job in case.jobs]
    )


def naively(
    case: Case, policy: str, options: dict[str, Any]
) -> tuple[naive_backfill.Simulation, list[list[Stay]]]:
    rules = naive_backfill.Rules(everyone=policy == "conservative", **options)
    naive = naive_backfill.Simulation(naive_cluster(case), case.jobs, rules, slowdown(case))
    return naive, naive.run()


def compare_seeds(policy: str, seeds: range, most_gpus: int, most_jobs: int) -> dict[str, int]:
    """Compare one case for each seed; returns how often parts of the rules decided something."""
    happened: dict[str, int] = {}
    for seed in seeds:
        rng = Random(f"backfill {seed}")
        case = with_limits(random_case(rng, most_gpus, most_jobs), rng)
        options = {name: rng.choice(values) for name, values in OPTIONS.items()}
        if options["estimates"] == "learned":
            case = without_some(case, rng)
        naive, stays = naively(case, policy, options)
        assert simulated(case, policy, options) == stays, (seed, options)
        for what, times in naive.happened.items():
            happened[what] = happened.get(what, 0) + times
    return happened


PARTS = {"easy": {"refused", "backfilled"}, "conservative": {"late", "compressed"}}


@pytest.mark.parametrize("policy", POLICIES)
def test_every_stay_follows_from_the_rules(policy: str) -> None:
    happened = compare_seeds(policy, range(500), 16, 10)
    assert all(happened[what] > 50 for what in PARTS[policy]), happened


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
def test_stays_agree_on_larger_traces(policy: str) -> None:
    compare_seeds(policy, range(10_000, 10_000 + CASES), 32, 16)


@settings(max_examples=200)
@given(
    cases(16, 8),
    st.sampled_from(POLICIES),
    st.fixed_dictionaries({name: st.sampled_from(values) for name, values in OPTIONS.items()}),
    st.randoms(use_true_random=False),
)
def test_stays_agree_on_traces_that_shrink(case, policy, options, rng) -> None:
    case = with_limits(case, rng)
    assert simulated(case, policy, options) == naively(case, policy, options)[1]


@pytest.mark.parametrize("order", OPTIONS["order"])
def test_no_job_starts_after_its_first_reservation_if_none_outlasts_its_estimate(order) -> None:
    kept = 0
    for seed in range(100):
        rng = Random(f"reservations {seed}")
        case = random_case(rng, 16, 12)
        estimates = rng.choice(["exact", "factor:3"])
        options = {"order": order, "estimates": estimates, "placement": "pack"}
        naive, _ = naively(case, "conservative", options)
        starts = [stays[0].start for stays in simulated(case, "conservative", options)]
        for handle, promised in naive.promised.items():
            assert starts[handle] <= promised
            assert estimates == "factor:3" or starts[handle] == promised
            kept += 1
    assert kept > 500


@pytest.mark.parametrize("placement", OPTIONS["placement"])
def test_the_head_of_easy_starts_by_its_reservation(placement: str) -> None:
    kept = 0
    for seed in range(200):
        case = random_case(Random(f"heads {seed}"), 16, 12)
        options = {"order": "arrival", "estimates": "exact", "placement": placement}
        naive, _ = naively(case, "easy", options)
        starts = [stays[0].start for stays in simulated(case, "easy", options)]
        for handle, promised in naive.promised.items():
            assert starts[handle] <= promised
            kept += 1
    assert kept > 200
