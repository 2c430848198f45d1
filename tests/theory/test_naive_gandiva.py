"""Does Gandiva do what its rule says? Compared with the naive simulator of `naive_gandiva.py`."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import naive
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_gandiva import Gandiva, GandivaRules
from test_naive_classics import Case, cases, naive_cluster, simulated, slowdown

from artist.rng import stream

OPTIONS = st.fixed_dictionaries(
    {
        "quantum_s": st.sampled_from([2.0, 1.0, 1.5, 4.0]),
        "migrate": st.booleans(),
        "fragmented_share": st.sampled_from([0.5, 0.25, 0.75, 1.0, 0.3]),
        "placement": st.sampled_from(["affinity"] * 5 + ["any", "pack", "consolidate-or-wait"]),
        "seed": st.integers(0, 2),
    }
)


def order(case: Case, options: dict[str, Any]) -> Callable[[], list[int]]:
    """The random orders of machines, one per call: the ones that artist draws."""
    draws = stream(options["seed"], "gandiva.scatter")
    cluster = naive_cluster(case)
    machines = len(cluster.units(cluster.machine))
    return lambda: draws.permutation(machines).tolist()


def origin(case: Case) -> int:
    """The tick from which slices are counted."""
    return 0


def reference(case: Case, options: dict[str, Any]) -> Gandiva:
    """The naive simulator of a case."""
    rules = GandivaRules(
        round(options["quantum_s"] * naive.SECOND),
        options["migrate"],
        Fraction(str(options["fragmented_share"])),
        options["placement"],
    )
    cluster, draws = naive_cluster(case), order(case, options)
    return Gandiva(cluster, case.jobs, rules, slowdown(case), draws, origin(case))


@settings(max_examples=300)
@given(cases(16, 8), OPTIONS)
def test_every_stay_of_every_job_follows_from_the_rule(case, options) -> None:
    assert simulated(case, "gandiva", options) == reference(case, options).run()


@pytest.mark.slow
@settings(max_examples=5_000)
@given(cases(40, 20), OPTIONS)
def test_so_it_does_with_more_jobs_on_larger_clusters(case, options) -> None:
    assert simulated(case, "gandiva", options) == reference(case, options).run()
