"""Tiresias' priority queues: the rank of a job by the service that it has attained.

Source: Gu et al., *Tiresias* (NSDI 2019), section 3.2.

Every job has two clocks: its run time and its service. Both count from zero at its arrival, and
again at each promotion.

    queue i:    threshold[i - 1] <= service < threshold[i]
    promotion:  wait >= promote_knob x run time

The wait is all time since the clocks were at zero in which the job held no GPUs. A waiting job is
promoted at the first tick at which this holds. A job that loses its GPUs later than that is
promoted at once.

**The two-dimensional Gittins index** orders the jobs inside a queue, from a sample of past service:

    index = P(S - a <= quantum | S > a) / E[min(S - a, quantum) | S > a]

- `a`: service that the job has attained.
- `S`: total service of a job. Its distribution is that of the sample.
- `quantum`: the next piece of service.

The index is the probability that the job finishes within the quantum, per unit of service spent on
it. The unit is the GPU-tick (a nanosecond of a GPU). Services are whole numbers of it, so the
index is exact. A job that has attained more than every job of the sample has index 0: nothing
suggests that it will ever finish.

Example: the sample is 10 and 100 GPU-seconds, the quantum is infinite. A job that has attained 0
has 1 / 55, one that has attained 10 has 1 / 90.
"""

from __future__ import annotations

import csv
import heapq
import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import accumulate
from pathlib import Path

from artist.contract import JobView
from artist.errors import ConfigError, did_you_mean
from artist.io.documents import MOST_GPU_S
from artist.io.reading import as_float, read_text
from artist.policies.shared.ranking import Rank
from artist.policies.shared.ratios import ZERO, ExactKey, exact_key
from artist.units import Tick, ticks


class ServiceQueues:
    """Ranks of jobs: the number of the queue first, then the order inside it.

    `promote_knob` is None for no promotion. `index(attained, quantum)` is the Gittins index; None
    for the order of starts. The quantum of a queue is its upper threshold, None for the last queue.
    """

    def __init__(
        self,
        thresholds_gpu_s: Sequence[float],
        promote_knob: float | None,
        index: Callable[[int, int | None], ExactKey] | None,
    ) -> None:
        # In GPU-ticks, like all services here: whole numbers are compared without rounding.
        self._thresholds = tuple(ticks(threshold) for threshold in thresholds_gpu_s)
        # As the user wrote it: 0.1 is one tenth, not the nearest float.
        self._knob = None if promote_knob is None else Fraction(str(promote_knob))
        self._index = index
        self._starts: dict[int, Tick] = {}
        # Per job: when its clocks were last set to zero, and its run time and service until then.
        self._zero: dict[int, tuple[Tick, Tick, int]] = {}
        # (When a promotion is due, handle). Entries of jobs that run by now are stale.
        self._promotions: list[tuple[Tick, int]] = []
        self._views: dict[int, JobView] = {}

    def entered(self, job: JobView, now: Tick) -> None:
        """A job arrived, or lost its GPUs. Reporting one wait twice changes nothing."""
        if job.handle in self._views:
            return
        self._zero.setdefault(job.handle, (now, 0, 0))
        self._views[job.handle] = job
        due = self._due(job, now)
        if due is None:
            return
        if due <= now:
            self._promote(job, now)
        else:
            heapq.heappush(self._promotions, (due, job.handle))

    def started(self, handle: int, now: Tick) -> None:
        """A waiting job got GPUs."""
        self._starts.setdefault(handle, now)
        del self._views[handle]

    def stays(self, handle: int) -> None:
        """A job that was to lose its GPUs kept them after all."""
        self._views.pop(handle, None)

    def forget(self, handle: int) -> None:
        """A job finished."""
        self._starts.pop(handle, None)
        self._zero.pop(handle, None)

    def promote(self, now: Tick) -> Iterator[JobView]:
        """Move the jobs that have waited long enough to the first queue; answers them."""
        while (due := self.next_promotion(now)) is not None and due <= now:
            _, handle = heapq.heappop(self._promotions)
            self._promote(self._views[handle], now)
            yield self._views[handle]

    def next_promotion(self, now: Tick) -> Tick | None:
        """When the next waiting job is to be promoted; None if no job waits for that."""
        while self._promotions:
            due, handle = self._promotions[0]
            job = self._views.get(handle)
            if job is not None and self._due(job, now) == due:
                return due
            heapq.heappop(self._promotions)
        return None

    def rank(self, job: JobView, now: Tick) -> Rank:
        """The rank of a job; the smaller one comes first."""
        queue = self._queue(job, now)
        start = self._starts.get(job.handle, math.inf)
        if self._index is None:
            return (queue, start)
        top = self._thresholds[queue] if queue < len(self._thresholds) else None
        value, exact = self._index(self._attained(job, now), top)
        return (queue, -value, -exact, start)

    def _promote(self, job: JobView, now: Tick) -> None:
        """Set both clocks of a job to zero; with them it is in the first queue."""
        self._zero[job.handle] = (now, job.run_ticks(now), job.service_gpu_ticks(now))

    def _attained(self, job: JobView, now: Tick) -> int:
        return job.service_gpu_ticks(now) - self._zero[job.handle][2]

    def _queue(self, job: JobView, now: Tick) -> int:
        return bisect_right(self._thresholds, self._attained(job, now))

    def _due(self, job: JobView, now: Tick) -> Tick | None:
        """When a waiting job is to be promoted; None in the first queue, or without promotion."""
        if self._knob is None or not self._queue(job, now):
            return None
        zero, run, _ = self._zero[job.handle]
        executed = job.run_ticks(now) - run
        return zero + executed + math.ceil(self._knob * executed)


class GittinsIndex:
    """The index under one sample of services, in GPU-seconds."""

    def __init__(self, past_gpu_s: Sequence[float]) -> None:
        self._sorted = sorted(ticks(service) for service in past_gpu_s)
        self._sums = [0, *accumulate(self._sorted)]

    def __call__(self, attained: int, quantum: int | None) -> ExactKey:
        """The index of a job, as a sorting key; the larger one comes first.

        Both arguments are GPU-ticks. A quantum of None has no end.
        """
        # `alive` and `ended` are positions: how many services are at most `a`, and at most the end
        # of the quantum.
        total = len(self._sorted)
        alive = bisect_right(self._sorted, attained)
        if alive == total:
            return ZERO
        ended = total if quantum is None else bisect_right(self._sorted, attained + quantum)
        served = self._sums[ended] - self._sums[alive] - attained * (ended - alive)
        if quantum is not None:
            served += quantum * (total - ended)
        return exact_key(ended - alive, served)


def read_services(path: Path, column: str) -> list[float]:
    """A column of positive numbers (GPU-seconds) of a CSV file.

    Raises:
        ConfigError: unreadable file, missing column or a bad value; names file and line.
    """
    rows = csv.DictReader(read_text(path).splitlines())
    columns = rows.fieldnames or ()
    if column not in columns:
        raise ConfigError(f"{path}:1: no column {column!r}: {did_you_mean(column, columns)}")
    services = [_service(path, rows.line_num, column, row[column]) for row in rows]
    if not services:
        raise ConfigError(f"{path}: no rows, expected services in GPU-seconds")
    return services


def _service(path: Path, line: int, column: str, text: str | None) -> float:
    """A service in GPU-seconds; the error names file and line."""
    value = as_float(text)
    if not 0 < value <= MOST_GPU_S:
        raise ConfigError(
            f"{path}:{line}: {column} is {text!r}, expected GPU-seconds above 0 and at most "
            f"{MOST_GPU_S:g}"
        )
    return value
