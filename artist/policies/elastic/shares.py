"""Elastic jobs without goodput: GPUs go one by one to the job that a rule names.

Every job first gets the fewest GPUs that it runs on, in order of arrival, while they last. Each
further GPU goes where its gain is largest, and none goes where it would slow the job down.

| option `rule` | gain of a GPU |
| --- | --- |
| `equal-share` | 1 / the GPUs that the job has: all get as many |
| `max-throughput` | how much faster the job gets, over its speed on the GPUs that it asked for |
| `optimus` | by how much the job will end earlier |

Source: Peng et al., *Optimus*, EuroSys 2018, section 4.1. Its throughput and remaining work are
known here, not fitted, as in Pollux's program.

A job's speed on so many GPUs is that of the estimate on the closest ones of an empty cluster.
Batches stay as submitted. Rounds come every `period_s`. A job whose number of GPUs does not change
moves only to a better level; the others are packed, the largest first.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from typing import ClassVar

from artist.cluster.free_gpus import FreeGpus
from artist.contract import ClusterView, Decision, JobView
from artist.policies.elastic.rounds import Rounds, changes, movable, pool_of
from artist.policies.options import SharesOptions
from artist.policies.shared.placers import PackPlacer
from artist.rng import FIRST_DRAWS, Draws


class Shares(Rounds):
    """`equal-share`, `max-throughput` and `optimus`."""

    Options: ClassVar = SharesOptions

    def __init__(self, options: SharesOptions, draws: Draws = FIRST_DRAWS) -> None:
        super().__init__(options.period_s, draws)
        self.options = options
        self._placer = PackPlacer()
        self._speeds: dict[tuple[object, ...], float] = {}

    def round(self, view: ClusterView) -> Sequence[Decision]:
        """Share the GPUs out anew."""
        jobs = movable(view)
        counts = self._counts(view, jobs, pool_of(view, jobs).total)
        return changes(view, jobs, self._placer.joint(view, counts))

    def _counts(self, view: ClusterView, jobs: Mapping[int, JobView], gpus: int) -> dict[int, int]:
        """GPUs of each job; 0 if it gets none."""
        counts = dict.fromkeys(jobs, 0)
        heap: list[tuple[float, int]] = []
        for handle, state in jobs.items():
            if state.job.gpus_min <= gpus:
                counts[handle] = state.job.gpus_min
                gpus -= state.job.gpus_min
                self._offer(heap, view, state, counts[handle])
        while gpus and heap:
            _, handle = heapq.heappop(heap)
            counts[handle] += 1
            gpus -= 1
            self._offer(heap, view, jobs[handle], counts[handle])
        return counts

    def _offer(
        self, heap: list[tuple[float, int]], view: ClusterView, state: JobView, has: int
    ) -> None:
        """Let a job compete for one more GPU."""
        if has < min(state.job.gpus_max, view.cluster.gpus):
            gain = self._gain(view, state, has)
            if gain > 0:
                heapq.heappush(heap, (-gain, state.handle))

    def _gain(self, view: ClusterView, state: JobView, has: int) -> float:
        speed, faster = self._speed(view, state, has), self._speed(view, state, has + 1)
        if self.options.rule == "equal-share":
            return 1 / has if faster > speed else 0.0
        if self.options.rule == "max-throughput":
            return (faster - speed) / self._speed(view, state, state.job.gpus)
        left = state.job.iterations - state.iterations_done(view.now)
        return left * (1 / speed - 1 / faster)

    def _speed(self, view: ClusterView, state: JobView, gpus: int) -> float:
        """Submitted iterations per second."""
        job = state.job
        key = (job.model, job.compute_s, job.gpus, gpus)
        if key not in self._speeds:
            placement = self._placer.place(FreeGpus(view.cluster), gpus)
            assert placement is not None  # the trace was checked: every job fits the cluster
            rate = view.alone(job, placement)
            self._speeds[key] = 1 / rate.submitted_iteration_s
        return self._speeds[key]
