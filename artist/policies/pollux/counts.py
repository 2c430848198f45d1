"""How many GPUs each job should have: the least sum of costs, by dynamic programming over jobs.

Jobs may want more GPUs of some kinds than there are. Then the jobs that accept no other kinds share
these, the other jobs share the rest, and so on. This is optimal if each further GPU gains less
(Groenevelt, *Two algorithms for maximizing a separable concave function over a polymatroid feasible
region*, 1991).
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def best_counts(costs: Mapping[int, Floats], gpus: int) -> dict[int, int]:
    """Share at most `gpus` GPUs among jobs; of equal sums, the last jobs get the fewest.

    Args:
        costs: job -> its cost on 0, 1, ... GPUs, up to the most that it may have.
        gpus: how many there are.
    """
    if not costs:
        return {}
    *others, last = costs
    most, every = min(max(map(len, costs.values())) - 1, gpus), np.arange(gpus + 1)
    # The least sums of the jobs so far, behind as many places as a job may take.
    padded = np.full(most + gpus + 1, np.inf)
    best = padded[most:]
    best[:] = 0.0
    (step,) = padded.strides
    steps: list[npt.NDArray[np.intp]] = []
    for job in others:
        of_job = costs[job][: gpus + 1]
        # Row g has best[g - taken] for taken = 0, 1, ...
        rows = np.ndarray((gpus + 1, len(of_job)), padded.dtype, padded, step * most, (step, -step))
        sums = rows + of_job
        taken = sums.argmin(axis=1)
        steps.append(taken)
        best[:] = sums[every, taken]
    of_last = costs[last][: gpus + 1]
    counts = {last: int((best[::-1][: len(of_last)] + of_last).argmin())}
    left = gpus - counts[last]
    for job, taken in zip(reversed(others), reversed(steps), strict=True):
        counts[job] = int(taken[left])
        left -= counts[job]
    return counts


def best_counts_by_kind(
    costs: Mapping[int, Floats],
    accepted: Mapping[int, AbstractSet[str]],
    gpus: int,
    room: Mapping[str, int],
) -> dict[int, int]:
    """Share at most `gpus` GPUs among jobs; no GPUs of a kind are promised twice.

    Args:
        costs: as of `best_counts`.
        accepted: job -> the kinds of GPUs that it accepts; at least one of `room`.
        gpus: at most the sum of `room`.
        room: kind -> GPUs.
    """
    counts = best_counts(costs, gpus)
    accepted = {job: accepted[job] & room.keys() for job in costs}
    unions = {frozenset[str]()}
    for kinds in {frozenset(kinds) for kinds in accepted.values()}:
        unions |= {kinds | union for union in unions}
    most, scarce = 0, frozenset[str]()
    for kinds in sorted(unions, key=sorted):
        wanted = sum(counts[job] for job in costs if accepted[job] <= kinds)
        if (lack := wanted - sum(room[kind] for kind in kinds)) > most:
            most, scarce = lack, kinds
    if not most:
        return counts
    inside = {kind: left for kind, left in room.items() if kind in scarce}
    outside = {kind: left for kind, left in room.items() if kind not in scarce}
    only = {job: costs[job] for job in costs if accepted[job] <= scarce}
    others = {job: costs[job] for job in costs if not accepted[job] <= scarce}
    there = sum(inside.values())
    shares = best_counts_by_kind(only, accepted, there, inside)
    left = min(gpus - there, sum(outside.values()))
    return shares | best_counts_by_kind(others, accepted, left, outside)
