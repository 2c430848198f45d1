"""Random small traces on random small clusters, drawn so that every part of a rule happens often.

Hypothesis prefers small values, so that machines with room, gangs and busy hours seldom meet. Here
a case first draws its kind (a batch or a trickle, gangs or small jobs, a regular cluster or any),
and then its numbers. A seed gives the same case everywhere.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from test_naive_classics import COSTS, NAMES, Case, size

from artist.cluster.tree import Nested
from artist.workload.job import Job


def random_case(rng: Random, most_gpus: int, most_jobs: int, *, elastic: bool = False) -> Case:
    """A case. With `elastic`, most jobs run on several numbers of GPUs.

    Most traces begin at 0. In a quarter of them small jobs leave machines of four nearly empty.
    """
    quiet = rng.random() < 0.25
    names = rng.choice(NAMES)
    spec = _cluster(rng, len(names), most_gpus, quiet=quiet)
    drawn = _jobs(rng, size(spec), most_jobs, elastic=elastic, quiet=quiet)
    jobs = [Job(id=str(handle), model="any", **fields) for handle, fields in enumerate(drawn)]
    costs = rng.choice(COSTS)
    if rng.random() < 0.3:
        # Times that floats do not hold exactly. With these costs an iteration still takes exactly
        # the decimal number that it prints as, so that ties stay ties.
        costs, unit = rng.choice([(0.0, 0.0), (1.0, 3.0)]), rng.choice([0.1, 0.3, 0.7])
        jobs = [replace(job, compute_s=round(job.compute_s * unit, 9)) for job in jobs]
    return Case(names, spec, rng.randrange(3), *costs, jobs)


def _cluster(rng: Random, levels: int, most: int, *, quiet: bool) -> Nested:
    """A cluster of at most `most` GPUs; half of them have equal leaves."""
    leaf = 4 if quiet else rng.choice([1, 2, 4, 4]) if rng.random() < 0.5 else 0
    room = most

    def unit(level: int) -> Nested:
        nonlocal room
        if level == 0:
            gpus = min(leaf or rng.randint(1, 4), room)
            room -= gpus
            return gpus
        parts = [unit(level - 1)]
        while room and len(parts) < 4 and rng.random() < (0.9 if quiet else 0.7):
            parts.append(unit(level - 1))
        return parts

    return unit(levels - 1)


def _jobs(rng: Random, gpus: int, most: int, *, elastic: bool, quiet: bool) -> list[dict[str, Any]]:
    """Jobs in order of arrival."""
    count = rng.randint(max(2, most // 2), most)
    demands = rng.choice([[1], [1, 2], [1, 1, 2, 4], [2, 3, 5], list(range(1, 10))])
    if quiet:
        count, demands = most, [1, 1, 1, 2]
    spread = rng.choice([0, 2] if quiet else [0, 2, count, 3 * count])
    first = rng.choice([0, 0, 0, 0, 1, 3])
    arrivals = sorted(rng.randint(0, spread) for _ in range(count))
    alike = rng.random() < 0.2
    jobs = []
    for arrival in arrivals:
        demand = min(rng.choice(demands), gpus)
        fields = {
            "arrival_s": float(first + arrival - arrivals[0]),
            "gpus": demand,
            "iterations": 6 if alike else rng.choice([1, 2, 3, 5, 8, 12]),
            # Some iterations are longer than a slice, a lease or a period.
            "compute_s": 1.0 if alike else rng.choice([1.0, 1.0, 2.0, 0.5, 3.0]),
            "restart_s": rng.choice([0.0, 0.0, 0.5, 1.0, 3.0]),
        }
        if elastic and rng.random() < 0.7:
            fields["gpus_min"] = rng.randint(1, demand)
            fields["gpus_max"] = rng.randint(demand, min(gpus, demand + 4))
        jobs.append(fields)
    return jobs
