"""The original simulator's books of a job: batches, sums and waiting time.

The original simulator advances jobs by batches of G iterations per GPU, and adds up
double-precision numbers batch by batch. The rounding of these sums decides between jobs of equal
priority. So this module adds the same numbers in the same order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from artist.units import TICKS_PER_S, Tick


@dataclass(slots=True)
class Account:
    """One job's books. Times are seconds.

    `total` and `remaining` count the iterations of all GPUs together: a batch on n GPUs does n G.
    """

    total: int
    compute_s: float
    gpus: int
    since_s: float
    """When it last entered the queue: arrival, or the end of its last lease."""
    remaining: int = -1
    run_s: float = 0.0
    service_gpu_s: float = 0.0

    def __post_init__(self) -> None:
        if self.remaining < 0:
            self.remaining = self.total

    @property
    def slowdown(self) -> float:
        """`Nw_sens`: ideal time of the work done / its actual time; 0 before the first batch."""
        if not self.run_s:
            return 0.0
        ideal_s = self.compute_s * self.total / self.gpus
        return (1 - self.remaining / self.total) / (self.run_s / ideal_s)

    def ran(self, batches: int, iteration_s: float, granularity: int) -> None:
        """The job completed some batches of `granularity` iterations per GPU."""
        batch_s = iteration_s * granularity
        self.remaining = max(0, self.remaining - batches * granularity * self.gpus)
        self.run_s = summed(self.run_s, batch_s, batches)
        self.service_gpu_s = summed(self.service_gpu_s, self.gpus * batch_s, batches)


def summed(start: float, step: float, count: int) -> float:
    """`start` + `count` x `step`, rounded after each addition."""
    terms = np.full(count + 1, step)
    terms[0] = start
    return float(np.add.accumulate(terms)[-1])


def lease_batches(batch_s: float, lease_s: float, gpus: int) -> tuple[int, bool]:
    """How many batches a lease lasts, and whether it has expired at the end of the last one.

    At the end of a batch the job gives its GPUs back if the lease has expired, or if the next
    batch would outlive it. The original simulator assumes that the next batch lasts only
    `batch_s / gpus`.
    """
    # Close to the answer. The loop finds the exact one, whatever the rounding.
    early = max(1, math.floor((lease_s - batch_s / gpus) / batch_s) + 1)
    for batches in (early - 1, early, early + 1):
        end = batches * batch_s
        if batches >= 1 and (end >= lease_s or end + batch_s / gpus > lease_s):
            return batches, end >= lease_s
    raise AssertionError("one of three neighbouring batches ends the lease")


def after(anchor: Tick, iterations: int, iteration_s: float) -> Tick:
    """The tick at which this many iterations from `anchor` are done, rounded as in the engine."""
    # In integers, rounded up: floats would lose ticks.
    num, den = iteration_s.as_integer_ratio()
    return anchor - (-iterations * num * TICKS_PER_S // den)
