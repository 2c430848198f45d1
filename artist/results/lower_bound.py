"""A lower bound on the makespan: no policy can finish a trace earlier.

The larger of

    the job that must end last   max over jobs of (arrival + its shortest run time)
    all work on all GPUs         first arrival + sum over jobs of its least GPU time / GPUs

both counted from the first arrival: the two classic bounds for parallel machines (Graham, *Bounds
on Multiprocessing Timing Anomalies*, SIAM J. Appl. Math., 1969), with arrivals.

A job runs at the best possible speed: without waiting, restarts and communication, except for the
constant share of its calibration, which every placement of several GPUs pays. The fastest placement
is not known for every fabric, so no other communication is counted. An elastic job has as many GPUs
as it can use, of the kind on which it is fastest. A job with goodput parameters fills every GPU,
communicates nothing, and no sample counts less than one of the submitted batch. If a table says how
fast jobs share a GPU, as many as allowed share it, each as fast as in the table's fastest pair. So
the bound holds for every policy, and perhaps none reaches it.

It is computed exactly, then rounded down to whole ticks, so that the rounding of finishes cannot
break it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction

from artist.engine.rows import JobRow
from artist.units import GPU_MILLI, Tick, exact_ticks
from artist.workload.job import Job

_WORTH = 1 << 44
"""The engine rounds up what an iteration of an elastic job is worth, by at most 1 / `_WORTH`."""


def makespan_bound(
    rows: Sequence[JobRow],
    gpus: int,
    constant_share: Callable[[str], float],
    least_scale: Callable[[Job], float] = lambda _job: 1.0,
    gains: tuple[float, float] = (1.0, 1.0),
) -> tuple[Tick, Tick]:
    """First arrival, and the tick before which no policy can finish these jobs on this many GPUs.

    `constant_share` gives the share of compute time that a model communicates on every placement
    of more than one GPU. `least_scale` gives the ratio of a job's shortest compute time on any kind
    of GPU to its compute time in the trace. `gains` are upper bounds for jobs that share GPUs,
    relative to one job alone: of the speed of a single job, and of the work of all together.
    """
    faster, slower = gains[0].as_integer_ratio()
    first = longest = min(row.arrival for row in rows)
    # Few denominators occur, and adding fractions job by job takes ten times as long.
    work: Counter[int] = Counter()
    for row in rows:
        share = constant_share(row.job.model)
        shortest, numerator, denominator = _job_bounds(row.job, gpus, share, least_scale(row.job))
        longest = max(longest, row.arrival + shortest * slower // faster)
        if row.job.gpu_milli < GPU_MILLI:
            numerator, denominator = numerator * row.job.gpu_milli, denominator * GPU_MILLI
        work[denominator] += numerator
    total = sum(Fraction(numerator, denominator) for denominator, numerator in work.items())
    return first, max(longest, first + int(total / (gpus * Fraction(gains[1]))))


def _goodput_bounds(job: Job, gpus: int) -> tuple[Tick, int, int]:
    """As `_job_bounds`, for a job that may change its batch."""
    assert job.goodput is not None
    ticks, parts_of_tick = exact_ticks(job.goodput.least_gpu_s)
    work, parts = job.iterations * ticks * (_WORTH - 1), parts_of_tick * _WORTH
    return work // (parts * min(job.gpus_max, gpus)), work, parts


def _job_bounds(
    job: Job, gpus: int, constant_share: float, least_scale: float
) -> tuple[Tick, int, int]:
    """The shortest run time in ticks, and the least GPU-ticks as numerator and denominator."""
    if job.goodput is not None:
        return _goodput_bounds(job, gpus)
    elastic = job.gpus_min != job.gpus_max
    iterations = job.iterations * job.gpus * (_WORTH - job.gpus if elastic else 1)
    parts = _WORTH if elastic else 1
    most = min(job.gpus_max, gpus)
    compute_s = job.compute_s * least_scale
    together_s = compute_s * (1.0 + constant_share / least_scale)
    ticks, parts_of_tick = exact_ticks(together_s if most > 1 else compute_s)
    shortest = iterations * ticks // (parts * parts_of_tick * most)
    if job.gpus_min == 1 < most:  # it may also run alone, without communication
        ticks, parts_of_tick = exact_ticks(compute_s)
        shortest = min(shortest, iterations * ticks // (parts * parts_of_tick))
    return shortest, iterations * ticks, parts * parts_of_tick
