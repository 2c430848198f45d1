"""Tiresias as Pollux's authors ran it against Pollux: two queues, in rounds.

Source: simulator/tiresias.py of petuum/adaptdl, branch osdi21-artifact, which the evaluation of
Qiao et al., *Pollux*, OSDI 2021, section 5 uses. It differs from `tiresias` in time and place:

1. All is decided at the strikes of a clock. A job starts at the first one after its arrival, and
   may lose its GPUs at any.
2. At the first strike at which a running job's service (GPUs x time held, restarts included) has
   reached `threshold_gpu_s`, it moves to the second queue, forever.
3. The first queue comes before the second. The first is in order of arrival, the second in order
   of demotion, and of arrival among jobs demoted together. So a job that waits in the first queue
   takes the GPUs of one that arrived after it.
4. A job that does not fit is passed. Jobs run on as many GPUs as they ask for.
5. A job that goes on running keeps its GPUs. The others get those of the machines with most free
   ones.

In a cluster of several regions, no job that fits one spans two. Ours.

**Checked** with recorded step times: all 6,400 jobs of the 32 published runs of that program end in
the published second (`make pollux`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from artist.contract import ClusterView, Decision
from artist.policies.elastic.emptiest import on_emptiest
from artist.policies.elastic.options import QueuesOptions
from artist.policies.elastic.rounds import Rounds, changes, movable
from artist.policies.shared.gpu_counts import GpuCounts
from artist.rng import FIRST_DRAWS, Draws
from artist.units import ticks


class Queues(Rounds):
    """`tiresias-rounds`."""

    Options: ClassVar = QueuesOptions
    obeys_gpu_kinds = True

    def __init__(self, options: QueuesOptions, draws: Draws = FIRST_DRAWS) -> None:
        super().__init__(options.period_s, draws)
        self.options = options
        self._threshold = ticks(options.threshold_gpu_s)
        self._demoted: dict[int, None] = {}
        """In order of demotion."""

    def note(self, view: ClusterView) -> None:
        """Forget jobs that have finished."""
        for handle in view.finished:
            self._demoted.pop(handle, None)

    def round(self, view: ClusterView) -> Sequence[Decision]:
        """Demote jobs, and serve queue by queue."""
        jobs = movable(view)
        for handle, state in jobs.items():
            if state.service_gpu_ticks(view.now) >= self._threshold:
                self._demoted.setdefault(handle)
        first = [handle for handle in jobs if handle not in self._demoted]
        second = [handle for handle in self._demoted if handle in jobs]
        room = GpuCounts(view.free, jobs.values())
        counts: dict[int, int] = {}
        for handle in (*first, *second):
            job = jobs[handle].job
            if job.gpus <= room.left(job.gpu_kinds):
                counts[handle] = job.gpus
                room.promise(job.gpu_kinds, job.gpus)
        return changes(view, jobs, on_emptiest(view, jobs, counts))

    def can_improve(self, view: ClusterView) -> bool:
        """Whether a job waits, or one runs that may be demoted: the order of demotions counts."""
        return bool(view.waiting) or not self._all_demoted(view)

    def settled(self, view: ClusterView) -> bool:
        """Whether all running jobs are demoted: else time alone demotes more."""
        return self._all_demoted(view)

    def _all_demoted(self, view: ClusterView) -> bool:
        return self._demoted.keys() >= view.running.keys()
