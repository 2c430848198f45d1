"""Before when can no policy finish a trace? A lower bound on its makespan.

The larger of

    the job that must end last   max over jobs of (arrival + its shortest run time)
    all work on all GPUs         first arrival + sum over jobs of its least GPU time / GPUs

both counted from the first arrival: the two classic bounds for parallel machines (Graham, *Bounds
on Multiprocessing Timing Anomalies*, SIAM J. Appl. Math., 1969), with arrivals.

A job runs at the best possible speed: without waiting, restarts and communication, but for the
constant share of its calibration, which every placement of several GPUs pays. Which placement of a
job is the fastest is not known for every fabric, so no other communication is counted. An elastic
job has as many GPUs as it can use. So the bound holds for every policy; perhaps none reaches it.

It is computed in whole ticks, rounded down, so that the rounding of finishes cannot break it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from artist.engine.rows import JobRow
from artist.units import Tick, exact_ticks
from artist.workload.job import Job

_WORTH = Fraction(1, 1 << 44)
"""The engine rounds up by at most so much what an iteration of an elastic job is worth."""


def makespan_bound(
    rows: Sequence[JobRow], gpus: int, constant_share: Callable[[str], float]
) -> tuple[Tick, Tick]:
    """First arrival, and the tick before which no policy can finish these jobs on so many GPUs.

    `constant_share` gives the share of compute time that a model communicates on every placement
    of more than one GPU.
    """
    first = min(row.arrival for row in rows)
    longest, work = first, Fraction(0)
    for row in rows:
        shortest, least = _job_bounds(row.job, gpus, constant_share(row.job.model))
        longest = max(longest, row.arrival + int(shortest))
        work += least
    return first, max(longest, first + int(work / gpus))


def _job_bounds(job: Job, gpus: int, constant_share: float) -> tuple[Fraction, Fraction]:
    """The shortest run time in ticks, and the least GPU time in GPU-ticks."""
    together = Fraction(*exact_ticks(job.compute_s * (1.0 + constant_share)))
    alone = Fraction(*exact_ticks(job.compute_s))
    work = Fraction(job.iterations * job.gpus)
    if job.gpus_min != job.gpus_max:
        work *= 1 - job.gpus * _WORTH
    most = min(job.gpus_max, gpus)
    on_most = work / most * (together if most > 1 else alone)
    if job.gpus_min > 1:
        return on_most, work * together
    return min(on_most, work * alone), work * alone
