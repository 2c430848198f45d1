"""Does Dally do what its rule says? Compared with the naive simulator of `naive_dally.py`."""

from __future__ import annotations

from typing import Any

import naive
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_dally import AutoDally, Dally, DallyRules, TunedRules
from support import CASES
from test_naive_classics import Case, cases, naive_cluster, simulated, slowdown

from artist.workload.job import Job

NEVER = 10**9  # seconds; the end of no trace
TIMERS = {"none": (0, 0), "unbounded": (NEVER, NEVER)}

FIXED = st.fixed_dictionaries(
    {
        "timers": st.sampled_from(["none", "unbounded", "manual"]),
        "machine_timer_s": st.sampled_from([1.0, 2.0, 5.0]),
        "rack_timer_s": st.sampled_from([1.0, 3.0, 8.0]),
        "lease_s": st.sampled_from([1.5, 1.0, 2.0, 4.0]),
        "moves_for": st.sampled_from(["level", "shape"]),
    }
)
TUNED = st.fixed_dictionaries(
    {
        # Short timers where no wait is known, so that waits of all lengths are recorded.
        "machine_timer_s": st.sampled_from([0.0, 1.0, 2.0, 5.0]),
        "rack_timer_s": st.sampled_from([0.0, 1.0, 3.0, 8.0]),
        "history_s": st.sampled_from([2.0, 5.0, 1000.0]),
        "deviations": st.sampled_from([2.0, 0.0, 0.5]),
        "deviation": st.sampled_from(["sample", "population"]),
        "lease_s": st.sampled_from([1.5, 1.0, 2.0, 4.0]),
        "moves_for": st.sampled_from(["level", "shape"]),
    }
)


def expected(case: Case, options: dict[str, Any]) -> list[list[naive.Stay]]:
    """The stays of every job, by the naive simulator."""
    manual = (options["machine_timer_s"], options["rack_timer_s"])
    machine_s, rack_s = TIMERS.get(options["timers"], manual)
    rules = DallyRules(
        lease=naive.ticks(options["lease_s"]),
        machine_timer=naive.ticks(machine_s),
        rack_timer=naive.ticks(rack_s),
        moves_for_shape=options["moves_for"] == "shape",
    )
    return Dally(naive_cluster(case), case.jobs, rules, slowdown(case)).run()


def expected_tuned(case: Case, options: dict[str, Any]) -> list[list[naive.Stay]]:
    """The stays of every job, by the naive simulator that tunes its timers."""
    rules = TunedRules(
        lease=naive.ticks(options["lease_s"]),
        machine_timer=naive.ticks(options["machine_timer_s"]),
        rack_timer=naive.ticks(options["rack_timer_s"]),
        moves_for_shape=options["moves_for"] == "shape",
        window=naive.ticks(options["history_s"]),
        deviations=options["deviations"],
        population=options["deviation"] == "population",
    )
    return AutoDally(naive_cluster(case), case.jobs, rules, slowdown(case)).run()


# The second job loses its GPUs to the third at 4 s. At 5 s its timer expires, and each machine has
# a free GPU.
LOSES = Case(
    names=("machine", "network"),
    spec=[2, 3],
    permutation=0,
    rack=1.0,
    network=3.0,
    jobs=[
        Job("holds", 0.0, 1, "any", iterations=3, compute_s=3.0),
        Job("loses", 2.0, 2, "any", iterations=3, compute_s=1.0),
        Job("takes", 4.0, 2, "any", iterations=2, compute_s=1.0),
    ],
)
IN_TIME = {
    "timers": "manual",
    "machine_timer_s": 1.0,
    "rack_timer_s": 3.0,
    "lease_s": 1.5,
    "moves_for": "level",
}


def test_a_job_that_lost_its_gpus_gets_others_when_its_timer_expires() -> None:
    assert simulated(LOSES, "dally", IN_TIME) == expected(LOSES, IN_TIME)


# At 4 s job 2 expects to start at 6 s. It takes the GPUs of job 1 at 5.2 s, after a wait of 1.2 s.
# So nothing happens at 6 s, and no timer is tuned: job 1 starts at 7 s, when job 3 arrives, and not
# at 5.2 s + 1.2 s.
VOID = Case(
    names=("machine", "rack", "network"),
    spec=[[1, 3, 1], [1, 4, 2, 2], [2], [1, 3]],
    permutation=1,
    rack=0.1,
    network=0.3,
    jobs=[
        Job("0", 0.0, 1, "any", iterations=4, compute_s=3.0, restart_s=2.0),
        Job("1", 1.0, 9, "any", iterations=6, compute_s=2.0, restart_s=2.0),
        Job("2", 4.0, 9, "any", iterations=6, compute_s=3.0, restart_s=2.0),
        Job("3", 7.0, 7, "any", iterations=8, compute_s=0.5, restart_s=5.0),
    ],
)
FORGETFUL = {
    "lease_s": 1.5,
    "history_s": 2.0,
    "machine_timer_s": 0.0,
    "rack_timer_s": 3.0,
    "deviations": 0.0,
    "deviation": "population",
    "moves_for": "level",
}


def test_a_void_wake_up_tunes_no_timer() -> None:
    stays = simulated(VOID, "dally", FORGETFUL)
    assert stays == expected_tuned(VOID, FORGETFUL)
    assert [stay.start for stay in stays[1]] == [3 * naive.SECOND, 7 * naive.SECOND]


@settings(max_examples=100)
@given(cases(16, 8), FIXED)
def test_every_stay_of_every_job_follows_from_the_rule(case, options) -> None:
    assert simulated(case, "dally", options) == expected(case, options)


@settings(max_examples=100)
@given(cases(16, 8), TUNED)
def test_every_stay_follows_from_algorithm_2(case, options) -> None:
    assert simulated(case, "dally", options) == expected_tuned(case, options)


@pytest.mark.slow
@settings(max_examples=CASES)
@given(cases(40, 20), FIXED)
def test_stays_agree_with_more_jobs_on_larger_clusters(case, options) -> None:
    assert simulated(case, "dally", options) == expected(case, options)


@pytest.mark.slow
@settings(max_examples=CASES // 2)
@given(cases(40, 20), TUNED)
def test_stays_agree_with_algorithm_2_with_more_jobs_on_larger_clusters(case, options) -> None:
    assert simulated(case, "dally", options) == expected_tuned(case, options)
