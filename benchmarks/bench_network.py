"""Times models of contention: one question about a few jobs, or about many."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from artist.network.models.mean import mean
from artist.network.models.patterns import Contention, Flow, Member, Pattern, SharedLink
from artist.network.models.phase import phase

NIC = 46.57 * 2**30


def circle(jobs: int) -> Contention:
    """Unequal jobs; each is a ring of two machines and shares one of them with the next job."""
    random = np.random.default_rng(1)
    members = []
    for job in range(jobs):
        here, there = 2 * job, 2 * ((job + 1) % jobs)
        rate, up = random.uniform(0.5, 1.0) * NIC, random.uniform(0.1, 0.4)
        flows = (Flow((here, there + 1), rate), Flow((there, here + 1), rate))
        members.append(Member(Pattern.simple(1.0 - up, up * rate, *flows)))
    return Contention((SharedLink(NIC),) * (2 * jobs), tuple(members))


def bench_random_phases_of_four_jobs(measure: Callable[..., None]) -> None:
    """One question: four jobs joined by shared links, at random phases."""
    contention = circle(4)
    measure(lambda: mean(contention), rounds=10)


def bench_random_phases_of_sixty_four_jobs(measure: Callable[..., None]) -> None:
    """Sixty-four jobs joined by shared links, each from its crowd."""
    contention = circle(64)
    measure(lambda: mean(contention), rounds=3, items=64)


def bench_phases_of_eight_jobs(measure: Callable[..., None]) -> None:
    """Eight jobs joined by shared links, simulated event by event."""
    contention = circle(8)
    measure(lambda: phase(contention), rounds=3)
