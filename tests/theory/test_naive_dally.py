"""Does Dally do what its rule says? Compared with the naive simulator of `naive_dally.py`."""

from __future__ import annotations

from typing import Any

import naive
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_dally import Dally, DallyRules
from test_naive_classics import Case, cases, naive_cluster, simulated, slowdown

from artist.workload.job import Job

NEVER = 10**9  # seconds; the end of no trace
TIMERS = {"none": (0, 0), "unbounded": (NEVER, NEVER)}


def options(*timers: str) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            "timers": st.sampled_from(timers),
            "machine_timer_s": st.sampled_from([1.0, 2.0, 5.0]),
            "rack_timer_s": st.sampled_from([1.0, 3.0, 8.0]),
            "lease_s": st.sampled_from([1.5, 1.0, 2.0, 4.0]),
            "moves_for": st.sampled_from(["level", "shape"]),
        }
    )


def expected(case: Case, options: dict[str, Any]) -> list[list[naive.Stay]]:
    """The stays of every job, by the naive simulator."""
    manual = (options["machine_timer_s"], options["rack_timer_s"])
    timers = TIMERS.get(options["timers"], manual)
    machine, rack, lease = (round(s * naive.SECOND) for s in (*timers, options["lease_s"]))
    rules = DallyRules(lease, machine, rack, options["moves_for"] == "shape")
    return Dally(naive_cluster(case), case.jobs, rules, slowdown(case)).run()


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


@settings(max_examples=200)
@given(cases(16, 8), options("none", "unbounded", "manual"))
def test_every_stay_of_every_job_follows_from_the_rule(case, options) -> None:
    assert simulated(case, "dally", options) == expected(case, options)


@pytest.mark.slow
@settings(max_examples=5_000)
@given(cases(40, 20), options("none", "unbounded", "manual"))
def test_so_it_does_with_more_jobs_on_larger_clusters(case, options) -> None:
    assert simulated(case, "dally", options) == expected(case, options)
