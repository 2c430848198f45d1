"""Tiresias' priority queues: where a job stands by the service it has attained.

Source: Gu et al., *Tiresias* (NSDI 2019), sections 3.2.2 and 3.2.3.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence

from artist.contract import JobView
from artist.policies.shared.ranking import Rank
from artist.units import Tick


class ServiceQueues:
    """Ranks of jobs: the queue first, then the order inside it.

    `promote_knob`: None for no promotion. `index(attained, quantum)`: the Gittins index;
    None for the order of starts. The quantum of a queue is its upper threshold.
    """

    def __init__(
        self,
        thresholds_gpu_s: Sequence[float],
        promote_knob: float | None,
        index: Callable[[float, float], float] | None,
    ) -> None:
        self._thresholds = tuple(thresholds_gpu_s)
        self._knob = promote_knob
        self._index = index
        self._starts: dict[int, Tick] = {}
        # Per job: when both its clocks were zero, and its run time and service until then.
        self._zero: dict[int, tuple[Tick, Tick, float]] = {}
        self._promotions: list[tuple[Tick, int]] = []
        self._views: dict[int, JobView] = {}

    def entered(self, job: JobView, now: Tick) -> None:
        """A job arrived or was preempted."""
        zero, run, _ = self._zero.setdefault(job.handle, (now, 0, 0.0))
        self._views[job.handle] = job
        if self._knob is not None and self._queue(job, now):
            executed = job.run_ticks(now) - run
            due = zero + executed + round(self._knob * executed)
            heapq.heappush(self._promotions, (due, job.handle))

    def started(self, handle: int, now: Tick) -> None:
        """A waiting job got GPUs."""
        self._starts.setdefault(handle, now)
        del self._views[handle]

    def forget(self, handle: int) -> None:
        """A job finished."""
        self._starts.pop(handle, None)
        self._zero.pop(handle, None)

    def promotes(self, now: Tick) -> bool:
        """Whether somebody may have waited long enough."""
        return bool(self._promotions) and self._promotions[0][0] <= now

    def promote(self, now: Tick) -> Iterator[JobView]:
        """Jobs that have waited long enough; they are back in the first queue."""
        while self._promotions and self._promotions[0][0] <= now:
            due, handle = heapq.heappop(self._promotions)
            job = self._views.get(handle)
            if job is not None and self._due(job, now) == due:
                self._zero[handle] = (now, job.run_ticks(now), job.service_gpu_s(now))
                yield job

    def rank(self, job: JobView, now: Tick) -> Rank:
        """Smaller comes first; equals are told apart by order of arrival."""
        queue = self._queue(job, now)
        start = self._starts.get(job.handle, math.inf)
        if self._index is None:
            return (queue, start)
        top = self._thresholds[queue] if queue < len(self._thresholds) else math.inf
        return (queue, -self._index(self._attained(job, now), top), start)

    def _attained(self, job: JobView, now: Tick) -> float:
        return job.service_gpu_s(now) - self._zero[job.handle][2]

    def _queue(self, job: JobView, now: Tick) -> int:
        return bisect_right(self._thresholds, self._attained(job, now))

    def _due(self, job: JobView, now: Tick) -> Tick | None:
        """When a waiting job's wait reaches the knob times its run; None in the first queue."""
        if self._knob is None or not self._queue(job, now):
            return None
        zero, run, _ = self._zero[job.handle]
        executed = job.run_ticks(now) - run
        return zero + executed + round(self._knob * executed)
