"""Does Tiresias do what its rule says? Compared with the naive simulator of `naive_tiresias.py`."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import naive
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_tiresias import Tiresias, TiresiasRules
from support import CASES
from test_naive_classics import Case, cases, naive_cluster, simulated, slowdown

SKEWED, UNSKEWED = "vgg11", "resnet50"

OPTIONS = st.fixed_dictionaries(
    {
        "index": st.sampled_from(["las", "gittins"]),
        # Ties with 1.5 and 2 GPU-seconds are frequent.
        "thresholds_gpu_s": st.sampled_from([(3.0, 9.0), (1.5,), (), (1.0, 2.0, 6.0)]),
        "promote_knob": st.sampled_from([None, 1.0, 0.1, 0.7, 3.0]),
        "placement": st.sampled_from(["skew", "skew", "any", "pack", "consolidate-or-wait"]),
        "past_service_gpu_s": st.sampled_from([(2.0, 5.0, 20.0), (4.0,), (1.0, 3.0, 3.0, 8.0)]),
        "lease_s": st.sampled_from([1.5, 1.0, 2.0, 4.0]),
    }
)


@st.composite
def modelled_cases(draw: st.DrawFn, most_gpus: int, most_jobs: int) -> Case:
    """Cases whose jobs are skewed or not."""
    case = draw(cases(most_gpus, most_jobs))
    model = st.sampled_from([SKEWED, UNSKEWED])
    return case._replace(jobs=[replace(job, model=draw(model)) for job in case.jobs])


def expected(case: Case, options: dict[str, Any]) -> list[list[naive.Stay]]:
    """The stays of every job, by the naive simulator."""
    knob = options["promote_knob"]
    past = options["past_service_gpu_s"] if options["index"] == "gittins" else ()
    rules = TiresiasRules(
        lease=naive.ticks(options["lease_s"]),
        thresholds=tuple(map(naive.ticks, options["thresholds_gpu_s"])),
        knob=None if knob is None else Fraction(str(knob)),
        past=tuple(map(naive.ticks, past)),
        placement=options["placement"],
        skewed=frozenset([SKEWED]),
    )
    return Tiresias(naive_cluster(case), case.jobs, rules, slowdown(case)).run()


@settings(max_examples=100)
@given(modelled_cases(16, 8), OPTIONS)
def test_every_stay_of_every_job_follows_from_the_rule(case, options) -> None:
    assert simulated(case, "tiresias", options) == expected(case, options)


@pytest.mark.slow
@settings(max_examples=CASES // 2)
@given(modelled_cases(40, 20), OPTIONS)
def test_stays_agree_with_more_jobs_on_larger_clusters(case, options) -> None:
    assert simulated(case, "tiresias", options) == expected(case, options)
