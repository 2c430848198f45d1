"""Is SRTF optimal where theory says so? Against the best of all schedules of small instances.

Exact: jobs of one GPU and whole seconds, arriving at whole seconds, in iterations of one second, so
that preemption costs nothing and some best schedule changes hands at whole seconds only. On
one server shortest remaining time first has the least mean completion time whatever the arrivals
(Schrage, 1968); on several servers where all jobs arrive together (McNaughton, 1959, and
Conway, Maxwell and Miller, 1967: preemption does not help, shortest first is best), and there SJF
is as good. On several servers with arrivals it is not optimal, and a case below shows it.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import cluster, finishes, job, make_policy, run

Jobs = list[tuple[int, int]]
"""Arrival and length, in seconds."""

lengths = st.integers(1, 4)
any_jobs = st.lists(st.tuples(st.integers(0, 6), lengths), min_size=1, max_size=5).map(sorted)


def total_jct_s(policy: str, servers: int, jobs: Jobs) -> float:
    named = [job(str(n), 1, length, arrival_s=at) for n, (at, length) in enumerate(jobs)]
    found = finishes(run(cluster([servers]), named, make_policy(policy)))
    return sum(found[str(n)] - at for n, (at, _) in enumerate(jobs))


def least_total_jct_s(servers: int, jobs: Jobs) -> int:
    """Over all schedules that give each second to any jobs that have arrived.

    Each second costs one per job that is here. As many as there are servers are served: a second
    that a server idles away while a job is here can be given to that job at no one's expense.
    """

    @cache
    def least(now: int, left: tuple[int, ...]) -> int:
        if not any(left):
            return 0
        here = [n for n, rest in enumerate(left) if rest and jobs[n][0] <= now]
        return len(here) + min(
            least(now + 1, tuple(rest - (n in served) for n, rest in enumerate(left)))
            for served in combinations(here, min(servers, len(here)))
        )

    return least(0, tuple(length for _, length in jobs))


def test_the_brute_force_on_an_instance_done_by_hand() -> None:
    # 3 s at 0 and 1 s at 1: 0-1, 2-4 and 1-2, so 4 + 1. First come first served: 3 + 3.
    assert least_total_jct_s(1, [(0, 3), (1, 1)]) == 5
    assert total_jct_s("fifo", 1, [(0, 3), (1, 1)]) == 6
    assert total_jct_s("srtf", 1, [(0, 3), (1, 1)]) == 5


@settings(max_examples=150)
@given(any_jobs)
def test_srtf_is_optimal_on_one_server(jobs: Jobs) -> None:
    assert total_jct_s("srtf", 1, jobs) == least_total_jct_s(1, jobs)


@settings(max_examples=60)
@given(st.integers(2, 3), st.lists(lengths, min_size=1, max_size=6))
def test_shortest_first_is_optimal_on_several_servers_where_all_arrive_together(
    servers: int, found: list[int]
) -> None:
    jobs = [(0, length) for length in found]
    best = least_total_jct_s(servers, jobs)
    assert total_jct_s("srtf", servers, jobs) == best
    assert total_jct_s("sjf", servers, jobs) == best


@settings(max_examples=60)
@given(st.sampled_from(["las", "sjf", "fifo", "fifo-backfill", "srsf"]), any_jobs)
def test_no_policy_beats_the_best_schedule(policy: str, jobs: Jobs) -> None:
    assert total_jct_s(policy, 1, jobs) >= least_total_jct_s(1, jobs)


def test_srtf_is_not_optimal_on_two_servers_with_arrivals() -> None:
    # The two short ones first leave the long one's second half beside two new ones. Begun at once
    # it would be done when they come.
    jobs = [(0, 1), (0, 1), (0, 2), (2, 1), (2, 1)]
    assert least_total_jct_s(2, jobs) == 1 + 2 + 2 + 1 + 1
    assert total_jct_s("srtf", 2, jobs) == 1 + 1 + 3 + 1 + 2


@pytest.mark.parametrize("policy", ["srtf", "srsf"])
def test_remaining_time_and_remaining_service_agree_on_jobs_of_one_gpu(policy: str) -> None:
    jobs = [(0, 4), (1, 2), (2, 1), (2, 3)]
    assert total_jct_s(policy, 1, jobs) == least_total_jct_s(1, jobs)
