"""Does Dally tune its timers as Algorithm 2 says? Compared with `naive_dally_auto.py`."""

from __future__ import annotations

from typing import Any

import naive
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_dally import DallyRules
from naive_dally_auto import AutoDally, Tuning
from test_naive_classics import Case, cases, naive_cluster, simulated, slowdown

from artist.workload.job import Job

OPTIONS = st.fixed_dictionaries(
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
    lease, machine, rack, window = (
        round(options[key] * naive.SECOND)
        for key in ("lease_s", "machine_timer_s", "rack_timer_s", "history_s")
    )
    rules = DallyRules(lease, machine, rack, options["moves_for"] == "shape")
    tuning = Tuning(window, options["deviations"], options["deviation"] == "population")
    return AutoDally(naive_cluster(case), case.jobs, rules, tuning, slowdown(case)).run()


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
    assert stays == expected(VOID, FORGETFUL)
    assert [stay.start for stay in stays[1]] == [3 * naive.SECOND, 7 * naive.SECOND]


@settings(max_examples=200)
@given(cases(16, 8), OPTIONS)
def test_every_stay_of_every_job_follows_from_the_rule(case, options) -> None:
    assert simulated(case, "dally", options) == expected(case, options)


@pytest.mark.slow
@settings(max_examples=2_000)
@given(cases(40, 20), OPTIONS)
def test_so_it_does_with_more_jobs_on_larger_clusters(case, options) -> None:
    assert simulated(case, "dally", options) == expected(case, options)
