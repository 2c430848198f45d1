"""How many GPUs jobs can get together, for policies that hand out numbers of GPUs first.

Where some jobs accept some kinds only, a number is not enough: of 4 v100 and 4 k80, two jobs that
accept v100 only cannot get 4 each. Jobs can have what they are promised just if, for every set of
kinds, the jobs that accept no other have at most as many GPUs as there are of these (Hall's
marriage theorem). A gang may lie on several kinds that it accepts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import machine_counts
from artist.contract import JobView
from artist.workload.job import Job


class GpuCounts:
    """The free GPUs and those of some running jobs, less what was promised of them."""

    def __init__(self, free: FreeGpus, jobs: Iterable[JobView]) -> None:
        running = [job for job in jobs if job.placement is not None]
        self.total = free.total + sum(job.gpus for job in running)
        """GPUs that are promised to nobody."""
        self._there: Counter[str] = Counter()
        self._promised: Counter[frozenset[str]] = Counter()
        if free.hosts is not None:  # else every job accepts all kinds
            kinds, counts = free.tree.kinds, Counter[int]()
            for job in running:
                assert job.placement is not None  # it runs
                counts.update(machine_counts(free.tree, job.placement))
            for machine, count in enumerate(free.counts(free.tree.machine).tolist()):
                self._there[kinds[machine]] += count + counts[machine]

    def copy(self) -> GpuCounts:
        """An independent copy."""
        twin = GpuCounts.__new__(GpuCounts)
        twin.total, twin._there, twin._promised = self.total, self._there, self._promised.copy()
        return twin

    def left(self, job: Job) -> int:
        """The most GPUs that can be promised to a job."""
        if not self._there:
            return self.total
        unions = {self._accepted(job)}
        for kinds in self._promised:
            unions |= {kinds | union for union in unions}
        return min(map(self._beyond, unions))

    def promise(self, job: Job, gpus: int) -> None:
        """A job is to have so many more GPUs; fewer if below 0."""
        self.total -= gpus
        if self._there:
            self._promised[self._accepted(job)] += gpus

    def _accepted(self, job: Job) -> frozenset[str]:
        return frozenset(job.gpu_kinds or self._there)

    def _beyond(self, kinds: frozenset[str]) -> int:
        """GPUs of these kinds beyond those of jobs that accept no other."""
        inside = sum(gpus for accepted, gpus in self._promised.items() if accepted <= kinds)
        return sum(self._there[kind] for kind in kinds) - inside
