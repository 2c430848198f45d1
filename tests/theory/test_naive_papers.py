"""Do Gandiva and Themis do what their rules say? Compared with naive simulators of these rules.

`naive_gandiva.py` and `naive_themis.py` have the simulators. These count how often each part of the
rule decides something: traces in which a part never does would not test it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from random import Random
from typing import Any, NamedTuple

import pytest
from naive import ticks
from naive_gandiva import Gandiva, GandivaRules
from naive_themis import Themis, ThemisRules
from random_cases import random_case
from support import CASES
from test_naive_classics import Case, naive_cluster, simulated, slowdown

from artist.rng import Draws

GANDIVA_PARTS = {
    "former machine",
    "its affinity",
    "idle",
    "other affinity",
    "scattered",
    "passed",
    "takes GPUs of a running job",
    "keeps its GPUs at the end of a slice",
    "moves in a contest",
    "suspended",
    "to a better level",
    "to fewer machines",
    "out of a nearly empty machine",
}
THEMIS_PARTS = {
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


def gandiva_options(rng: Random) -> dict[str, Any]:
    return {
        "quantum_s": rng.choice([2.0, 1.0, 1.5, 4.0]),
        "migrate": rng.random() < 0.7,
        "fragmented_share": rng.choice([0.5, 0.25, 0.75, 1.0, 0.3]),
        "placement": rng.choice(["affinity"] * 5 + ["any", "pack", "consolidate-or-wait"]),
    }


def themis_options(rng: Random) -> dict[str, Any]:
    return {
        "lease_s": rng.choice([2.0, 1.0, 1.5, 4.0]),
        "period_s": rng.choice([2.0, 1.0, 3.0, 0.5, 5.0]),
        "fairness_knob": rng.choice([0.0, 0.3, 0.5, 0.7, 0.8]),
        "leftover": rng.choice(["random", "worst-first"]),
        "placement": rng.choice(["pack", "pack", "any", "consolidate-or-wait"]),
    }


def origin(case: Case, draws: Draws, period: int) -> int:
    """The tick from which slices or bidding periods are counted."""
    return ticks(case.jobs[0].arrival_s) + draws.phase(period)


def gandiva(case: Case, options: dict[str, Any], draws: Draws) -> Gandiva:
    """The naive simulator of a case, with the random orders of machines that artist draws."""
    drawn, cluster = draws.stream("gandiva.scatter"), naive_cluster(case)
    machines = len(cluster.units(cluster.machine))
    quantum = ticks(options["quantum_s"])
    rules = GandivaRules(
        quantum=quantum,
        migrate=options["migrate"],
        fragmented_share=Fraction(str(options["fragmented_share"])),
        placement=options["placement"],
        draw=lambda: drawn.permutation(machines).tolist(),
        origin=origin(case, draws, quantum),
    )
    return Gandiva(cluster, case.jobs, rules, slowdown(case))


def themis(case: Case, options: dict[str, Any], draws: Draws) -> Themis:
    """The naive simulator of a case, with the random orders of jobs that artist draws."""
    drawn, period = draws.stream("themis.leftover"), ticks(options["period_s"])
    shuffled = options["leftover"] == "random"
    rules = ThemisRules(
        lease=ticks(options["lease_s"]),
        period=period,
        knob=Fraction(str(options["fairness_knob"])),
        placement=options["placement"],
        draw=(lambda jobs: drawn.permutation(jobs).tolist()) if shuffled else None,
        origin=origin(case, draws, period),
    )
    return Themis(naive_cluster(case), case.jobs, rules, slowdown(case))


class Oracle(NamedTuple):
    """How a policy is compared."""

    policy: str
    options: Callable[[Random], dict[str, Any]]
    naive: Callable[[Case, dict[str, Any], Draws], Gandiva | Themis]
    parts: set[str]
    """The parts of the rule that the naive simulator counts."""
    sizes: list[tuple[int, int, int]]
    """Number of traces, most GPUs and most jobs."""
    elastic: bool


GANDIVA_SIZES = [(200, 16, 8), (200, 20, 10)]
THEMIS_SIZES = [(150, 16, 8), (150, 20, 12)]
ORACLES = [
    Oracle("gandiva", gandiva_options, gandiva, GANDIVA_PARTS, GANDIVA_SIZES, elastic=False),
    Oracle("themis", themis_options, themis, THEMIS_PARTS, THEMIS_SIZES, elastic=True),
]
each_oracle = pytest.mark.parametrize("oracle", ORACLES, ids=lambda oracle: oracle.policy)


def compare(oracle: Oracle, seed: int, gpus: int, jobs: int) -> Counter[str]:
    """Compare the stays of one random trace; returns which parts of the rule decided."""
    rng = Random(seed)
    elastic = oracle.elastic and rng.random() < 0.7
    case, options = random_case(rng, gpus, jobs, elastic=elastic), oracle.options(rng)
    draws = Draws(rng.randrange(3), case.permutation)
    expected = oracle.naive(case, options, draws)
    assert simulated(case, oracle.policy, options, draws) == expected.run(), (seed, case, options)
    return expected.happened


@each_oracle
def test_every_stay_of_every_job_follows_from_the_rule(oracle: Oracle) -> None:
    happened: Counter[str] = Counter()
    seed = 0
    for traces, gpus, jobs in oracle.sizes:
        for _ in range(traces):
            happened.update(compare(oracle, seed, gpus, jobs))
            seed += 1
    assert {part for part in oracle.parts if happened[part] >= 5} == oracle.parts, happened


@pytest.mark.slow
@each_oracle
@pytest.mark.parametrize("hundred", range(CASES // 400))
def test_stays_agree_with_more_jobs_on_larger_clusters(oracle: Oracle, hundred: int) -> None:
    for seed in range(100 * hundred, 100 * (hundred + 1)):
        compare(oracle, seed, 40, 20)
