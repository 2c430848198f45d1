"""Does Themis do what its rule says? Compared with the naive simulator of `naive_themis.py`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from random import Random
from typing import Any

import naive
import pytest
from naive_themis import Themis, ThemisRules
from random_cases import random_case
from test_naive_classics import Case, naive_cluster, simulated, slowdown

from artist.rng import Draws

PARTS = {
    "starts",
    "starts on offered GPUs",
    "waits",
    "wins",
    "pays",
    "leftovers to others",
    "leftovers to losers",
    "leftovers to winners",
    "loses",
    "shrinks",
    "grows",
    "keeps its number",
    "keeps its level",
    "moves to a better level",
}
"""The parts of the rule that the naive simulator counts."""


def random_options(rng: Random) -> dict[str, Any]:
    """Options of Themis."""
    return {
        "lease_s": rng.choice([2.0, 1.0, 1.5, 4.0]),
        "period_s": rng.choice([2.0, 1.0, 3.0, 0.5, 5.0]),
        "fairness_knob": rng.choice([0.0, 0.3, 0.5, 0.7, 0.8]),
        "leftover": rng.choice(["random", "worst-first"]),
        "placement": rng.choice(["pack", "pack", "any", "consolidate-or-wait"]),
    }


def order(draws: Draws) -> Callable[[int], list[int]]:
    """The random orders of so many jobs, one per call: the ones that artist draws."""
    drawn = draws.stream("themis.leftover")
    return lambda jobs: drawn.permutation(jobs).tolist()


def origin(case: Case, draws: Draws, period: int) -> int:
    """The tick from which bidding periods are counted."""
    return round(case.jobs[0].arrival_s * naive.SECOND) + draws.phase(period)


def reference(case: Case, options: dict[str, Any], draws: Draws) -> Themis:
    """The naive simulator of a case."""
    rules = ThemisRules(
        round(options["lease_s"] * naive.SECOND),
        round(options["period_s"] * naive.SECOND),
        Fraction(str(options["fairness_knob"])),
        options["leftover"] == "random",
        options["placement"],
    )
    cluster = naive_cluster(case)
    begin = origin(case, draws, rules.period)
    return Themis(cluster, case.jobs, rules, slowdown(case), order(draws), begin)


def compare(seed: int, gpus: int, jobs: int) -> Themis:
    """Compare the stays of one random trace."""
    rng = Random(seed)
    case, options = random_case(rng, gpus, jobs, elastic=rng.random() < 0.7), random_options(rng)
    draws = Draws(rng.randrange(3), case.permutation)
    expected = reference(case, options, draws)
    assert simulated(case, "themis", options, draws) == expected.run(), (seed, case, options)
    return expected


def test_every_stay_of_every_job_follows_from_the_rule() -> None:
    happened: Counter[str] = Counter()
    for seed in range(150):
        happened.update(compare(seed, 16, 8).happened)
    for seed in range(150, 300):
        happened.update(compare(seed, 20, 12).happened)
    # Traces in which a part of the rule never decides anything would not test it.
    assert {part for part in PARTS if happened[part] >= 5} == PARTS, happened


@pytest.mark.slow
@pytest.mark.parametrize("hundred", range(20))
def test_so_it_does_with_more_jobs_on_larger_clusters(hundred) -> None:
    for seed in range(100 * hundred, 100 * (hundred + 1)):
        compare(seed, 40, 20)
