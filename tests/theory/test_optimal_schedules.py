"""Is SRTF optimal where theory says so? Compared with the best of all schedules of small cases.

Jobs have one GPU and iterations of one second, and arrive at whole seconds. So preemption costs
nothing, and some best schedule moves GPUs at whole seconds only. Theory says:

- One server: SRTF has the least mean completion time, whatever the arrivals (Schrage, 1968).
- Several servers, all jobs arrive together: SRTF and SJF are optimal. Preemption does not help,
  shortest first is best (McNaughton, 1959; Conway, Maxwell and Miller, 1967).
- Several servers with arrivals: SRTF is not optimal. A case below shows it.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st
from support import cluster, finishes, job, make_policy, run

Jobs = list[tuple[int, int]]
"""Arrival and length, in seconds."""

lengths = st.integers(1, 4)
any_jobs = st.lists(st.tuples(st.integers(0, 6), lengths), min_size=1, max_size=5).map(sorted)


def total_jct_s(policy: str, servers: int, jobs: Jobs) -> float:
    named = [job(str(n), 1, length, arrival_s=at) for n, (at, length) in enumerate(jobs)]
    finish = finishes(run(cluster([servers]), named, make_policy(policy)))
    return sum(finish[str(n)] - at for n, (at, _) in enumerate(jobs))


def least_total_jct_s(servers: int, jobs: Jobs) -> int:
    """The least sum of completion times over all schedules that serve jobs second by second.

    Each second costs one per job in the system. Every server is used while there are jobs for it:
    an idle server could serve a job without any loss for the others.
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
    best = least_total_jct_s(1, jobs)
    assert total_jct_s("srtf", 1, jobs) == best
    assert total_jct_s("srsf", 1, jobs) == best  # jobs of one GPU: service is time


@settings(max_examples=60)
@given(st.integers(2, 3), st.lists(lengths, min_size=1, max_size=6))
def test_shortest_first_is_optimal_on_several_servers_where_all_arrive_together(
    servers: int, all_lengths: list[int]
) -> None:
    jobs = [(0, length) for length in all_lengths]
    best = least_total_jct_s(servers, jobs)
    assert total_jct_s("srtf", servers, jobs) == best
    assert total_jct_s("sjf", servers, jobs) == best


@settings(max_examples=60)
@given(st.sampled_from(["las", "sjf", "fifo", "fifo-backfill"]), any_jobs)
def test_no_policy_beats_the_best_schedule(policy: str, jobs: Jobs) -> None:
    assert total_jct_s(policy, 1, jobs) >= least_total_jct_s(1, jobs)


def test_srtf_is_not_optimal_on_two_servers_with_arrivals() -> None:
    # SRTF serves the two short jobs first. Then the second half of the long job competes with two
    # new jobs. If the long job began at once, it would be done when they arrive.
    jobs = [(0, 1), (0, 1), (0, 2), (2, 1), (2, 1)]
    assert least_total_jct_s(2, jobs) == 1 + 2 + 2 + 1 + 1
    assert total_jct_s("srtf", 2, jobs) == 1 + 1 + 3 + 1 + 2
