"""Whose GPUs a job may take: `preempt/qos`, `preempt/partition_prio` with PreemptMode REQUEUE.

Candidates come by the priority of their QOS (or PriorityTier), few machines first. They are taken
away one after the other until the job fits. Then those that gave most of the machines come first,
and it is tried again (`preempt_reorder_count`).

A job that is preempted waits again. slurmctld lets it start two minutes later at the earliest: so
long the credential of its last start is valid.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from artist.policies.slurm.backfill import RunningJob
from artist.policies.slurm.machines import Free
from artist.policies.slurm.request import Request
from artist.policies.slurm.selection import Selection
from artist.policies.slurm.settings import Settings

REQUEUE_DELAY_S = 121
"""Lifetime of a job credential, 120 s (slurm.conf, AuthInfo cred_expire), and one second."""

_LAST = 99999


class Preemption:
    """Which running jobs may make room for a job, and which of them do."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        modelled = settings.preempt_mode == "REQUEUE"
        self._type = settings.preempt_type if modelled else "none"

    @property
    def on(self) -> bool:
        """Whether any job can be preempted."""
        return self._type in ("qos", "partition_prio")

    def before(self, one: Request, other: Request) -> bool:
        """Whether a job could preempt another, and so comes before it."""
        if self._type == "qos":
            if one.qos is None or other.qos is None:
                return False
            return other.qos.name in one.qos.preempts and one.qos.name != other.qos.name
        return one.partition.tier > other.partition.tier

    def candidates(
        self,
        request: Request,
        running: Iterable[RunningJob],
        requests: Mapping[int, Request],
        now_s: int,
    ) -> list[RunningJob]:
        """The running jobs that may be preempted for a job, in Slurm's order."""
        found = []
        for job in running:
            other = requests[job.handle]
            exempt = now_s - job.start_s < self._settings.preempt_exempt_s
            if (
                job.machines & request.partition.machines
                and not exempt
                and self._mode(other) == "REQUEUE"
                and self.before(request, other)
            ):
                found.append(job)
        if "preempt_youngest_first" in self._settings.switches:
            return sorted(found, key=lambda job: (-job.start_s, job.handle))
        return sorted(found, key=lambda job: (self._rank(requests[job.handle]), job.handle))

    def choose(
        self,
        request: Request,
        free: Free,
        among: int,
        candidates: Sequence[RunningJob],
        selection: Selection,
    ) -> tuple[int, list[RunningJob]] | None:
        """The machines for a job and the jobs that leave them; None if it does not fit even so."""
        order = list(candidates)
        reorders = self._settings.numbers["preempt_reorder_count"]
        for attempt in range(1, reorders + 3):
            found = _fewest(request, free, among, order, selection)
            if found is None:
                return None
            chosen, gone = found
            if attempt > reorders + 1 or attempt >= len(order):
                break
            weights = {job.handle: (job.machines & chosen).bit_count() for job in gone[:-1]}
            weights[gone[-1].handle] = _LAST
            if "preempt_strict_order" in self._settings.switches:
                order.sort(key=lambda job: job.handle != gone[-1].handle)
            else:
                order.sort(key=lambda job: -weights.get(job.handle, 0))
        return chosen, [job for job in gone if job.machines & chosen]

    def _mode(self, request: Request) -> str:
        if self._type == "partition_prio":
            return request.partition.preempt_mode.upper()
        own = "cluster" if request.qos is None else request.qos.preempt_mode
        return self._settings.preempt_mode if own == "cluster" else own.upper()

    def _rank(self, request: Request) -> tuple[int, int]:
        if self._type == "partition_prio":
            return request.partition.tier, request.nodes
        return 0 if request.qos is None else request.qos.priority, request.nodes


def _fewest(
    request: Request, free: Free, among: int, order: Sequence[RunningJob], selection: Selection
) -> tuple[int, list[RunningJob]] | None:
    """The first so many candidates without which a job fits, and where."""
    trial, gone = free.copy(), list[RunningJob]()
    for job in order:
        job.leave(trial)
        gone.append(job)
        chosen = selection.choose(request, trial, among)
        if chosen is not None:
            return chosen, gone
    return None
