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


@settings(max_examples=200)
@given(cases(16, 8), OPTIONS)
def test_every_stay_of_every_job_follows_from_the_rule(case, options) -> None:
    assert simulated(case, "dally", options) == expected(case, options)


@pytest.mark.slow
@settings(max_examples=5_000)
@given(cases(40, 20), OPTIONS)
def test_so_it_does_with_more_jobs_on_larger_clusters(case, options) -> None:
    assert simulated(case, "dally", options) == expected(case, options)
