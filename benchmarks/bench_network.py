"""Times shares of links: the whole network of a large cluster at once."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from artist.network.models.max_min import Network, max_min
from artist.network.models.mean import mean
from artist.network.models.patterns import Contention, Flow, Member, Pattern, SharedLink
from artist.network.models.phase import phase

MACHINES, GPUS = 12_800, 8
SCATTERED = 1_484
SIZES = np.array([1, 2, 4, 8, 16, 16, 32, 64])
NIC = 46.57 * 2**30


def whole_cluster() -> Network:
    """102,400 GPUs, filled by 5,700 jobs of 1 to 64 GPUs; each is a ring over its machines.

    Most jobs lie on machines in order. On 1,484 machines GPUs are mixed at random, so
    that their jobs are joined by shared NICs.
    """
    random = np.random.default_rng(1)
    slots = np.repeat(np.arange(MACHINES), GPUS)
    mixed = random.permutation(slots[-SCATTERED * GPUS :])
    machines = np.concatenate((slots[: -len(mixed)], mixed))
    sizes = random.choice(SIZES, MACHINES * GPUS)
    ends = np.cumsum(sizes)
    ends = np.append(ends[ends < len(machines)], len(machines))
    paths, caps = [], []
    for first, last in pairwise([0, *ends.tolist()]):
        ring = list(dict.fromkeys(machines[first:last].tolist()))
        if len(ring) > 1:
            for machine, other in zip(ring, [*ring[1:], ring[0]], strict=True):
                paths.append([machine, MACHINES + other])
                caps.append((first % 97 + 3) / 400 * NIC)
    links, first = np.array(paths).ravel(), 2 * np.arange(len(paths) + 1)
    return Network(np.full(2 * MACHINES, NIC), links, first, np.array(caps), np.ones(len(caps)))


def bench_shares_of_a_whole_cluster(measure: Callable[..., None]) -> None:
    """Max-min shares of all flows of 102,400 GPUs."""
    network = whole_cluster()
    measure(lambda: max_min(network), rounds=5)


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
