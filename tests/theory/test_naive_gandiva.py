"""Does Gandiva do what its rule says? Compared with the naive simulator of `naive_gandiva.py`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from random import Random
from typing import Any

import naive
import pytest
from naive_gandiva import Gandiva, GandivaRules
from random_cases import random_case
from test_naive_classics import Case, naive_cluster, simulated, slowdown

from artist.rng import Draws

PARTS = {
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
"""The parts of the rule that the naive simulator counts."""


def random_options(rng: Random) -> dict[str, Any]:
    """Options of Gandiva."""
    return {
        "quantum_s": rng.choice([2.0, 1.0, 1.5, 4.0]),
        "migrate": rng.random() < 0.7,
        "fragmented_share": rng.choice([0.5, 0.25, 0.75, 1.0, 0.3]),
        "placement": rng.choice(["affinity"] * 5 + ["any", "pack", "consolidate-or-wait"]),
    }


def order(case: Case, draws: Draws) -> Callable[[], list[int]]:
    """The random orders of machines, one per call: the ones that artist draws."""
    drawn = draws.stream("gandiva.scatter")
    cluster = naive_cluster(case)
    machines = len(cluster.units(cluster.machine))
    return lambda: drawn.permutation(machines).tolist()


def origin(case: Case, draws: Draws, quantum: int) -> int:
    """The tick from which slices are counted."""
    return round(case.jobs[0].arrival_s * naive.SECOND) + draws.phase(quantum)


def reference(case: Case, options: dict[str, Any], draws: Draws) -> Gandiva:
    """The naive simulator of a case."""
    rules = GandivaRules(
        round(options["quantum_s"] * naive.SECOND),
        options["migrate"],
        Fraction(str(options["fragmented_share"])),
        options["placement"],
    )
    begin = origin(case, draws, rules.quantum)
    orders = order(case, draws)
    return Gandiva(naive_cluster(case), case.jobs, rules, slowdown(case), orders, begin)


def compare(seed: int, gpus: int, jobs: int) -> Gandiva:
    """Compare the stays of one random trace."""
    rng = Random(seed)
    case, options = random_case(rng, gpus, jobs), random_options(rng)
    draws = Draws(rng.randrange(3), case.permutation)
    expected = reference(case, options, draws)
    assert simulated(case, "gandiva", options, draws) == expected.run(), (seed, case, options)
    return expected


def test_every_stay_of_every_job_follows_from_the_rule() -> None:
    happened: Counter[str] = Counter()
    for seed in range(200):
        happened.update(compare(seed, 16, 8).happened)
    for seed in range(200, 400):
        happened.update(compare(seed, 20, 10).happened)
    # Traces in which a part of the rule never decides anything would not test it.
    assert {part for part in PARTS if happened[part] >= 5} == PARTS, happened


@pytest.mark.slow
@pytest.mark.parametrize("hundred", range(20))
def test_so_it_does_with_more_jobs_on_larger_clusters(hundred) -> None:
    for seed in range(100 * hundred, 100 * (hundred + 1)):
        compare(seed, 40, 20)
