"""Holdings of a run in which jobs ask for shares of GPUs. Other runs do not use this module.

A job that asks for a share of a GPU holds the share to its end. For each GPU with shares,

    idle + sum of the shares held = 1        (in thousandths, `SharedGpus.shares`)

The GPU is free when the last of its jobs has left.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar

from artist.cluster.gpu_shares import SharedGpus
from artist.cluster.placement import Placement
from artist.cluster.tree import ClusterTree
from artist.cluster.visiting_order import VisitingOrder
from artist.engine.answers import CheckedAnswer
from artist.engine.events import EventQueue
from artist.engine.holdings import Holdings
from artist.engine.job_state import PARTS, JobState
from artist.engine.rows import EndReason, PlacementRow
from artist.errors import PolicyError
from artist.units import GPU_MILLI, Tick
from artist.workload.job import Job


class SharingJob(JobState):
    """A job in a run with shares, whether it asks for a share itself or not."""

    __slots__ = ("_own", "_sharing")

    def __init__(self, sharing: dict[int, None], job: Job, handle: int, arrival: Tick) -> None:
        super().__init__(job, handle, arrival)
        self._sharing = sharing
        # What the job attains of each GPU-tick, in parts.
        self._own = PARTS * job.gpu_milli // GPU_MILLI

    def service_gpu_ticks(self, now: Tick) -> int:
        """Attained service: the job's part of GPUs x ticks held."""
        held = self._gpu_ticks + (now - self.started) * self.gpus
        return held - -(-(self._ceded + self._cedes(now)) // PARTS)

    def _cedes(self, now: Tick) -> int:
        """Parts of GPU-ticks on its GPUs in this interval that other jobs attained, or none did."""
        return (now - self.interval_start) * self.gpus * (PARTS - self._own)

    def place(self, placement: Placement, tier: int, now: Tick, restart: Tick) -> None:
        """Take GPUs, or a share of one."""
        super().place(placement, tier, now, restart)
        if self.job.is_share:
            self._sharing[self.handle] = None

    def unplace(self, now: Tick) -> None:
        """Give the GPUs back, or the share of one."""
        super().unplace(now)
        self._sharing.pop(self.handle, None)

    def close_interval(self, now: Tick, reason: EndReason, note: str) -> PlacementRow | None:
        """Settle the progress at the end of an interval of constant rate, and return its row."""
        if not self._beside:
            self._ceded += self._cedes(now)
        row = super().close_interval(now, reason, note)
        return None if row is None else row._replace(gpu_milli=self.job.gpu_milli)

    def schedule_lease(self, queue: EventQueue) -> None:
        """Schedule the end of the lease, except for a share, which the job keeps to its end."""
        if not self.job.is_share:
            super().schedule_lease(queue)


class SharedHoldings(Holdings):
    """The jobs in the system, and the GPUs of the cluster by who holds them or shares of them."""

    __slots__ = ("_handles", "shared")

    gpu_parts: ClassVar = GPU_MILLI

    def __init__(
        self, tree: ClusterTree, jobs: Sequence[Job], visiting_order: VisitingOrder | None
    ) -> None:
        super().__init__(tree, jobs, visiting_order)
        self.shared = SharedGpus(tree, visiting_order, self.on_notice)
        self.shared.hosts = self.free.hosts
        self.free = self.shared
        self.arrives = partial(SharingJob, self.sharing)
        self._handles = {job.id: handle for handle, job in enumerate(jobs)}

    @property
    def gpus_held(self) -> int:
        """GPUs that jobs hold, in thousandths."""
        return super().gpus_held * GPU_MILLI - self.shared.shares.idle

    def handle(self, name: str) -> int:
        """The handle of a job, by its id."""
        return self._handles[name]

    def exchange(self, answer: CheckedAnswer) -> None:
        """Exchange GPUs as without shares, and find the host of each job that gets a share."""
        leaving = (*answer.preempted, *answer.moved)
        if any(state.job.is_share for state in leaving):
            self._exchange_shares(answer, leaving)
        else:
            super().exchange(answer)
        placed = {state.handle for state, _ in answer.placed}
        for state, _ in answer.placed:
            placed.remove(state.handle)
            if state.job.is_share:
                beside = map(self.handle, self.shared.shares.beside(state.job))
                # A job of the same answer can be the host only if it is placed earlier.
                host = next((x for x in beside if x not in placed), None)
                if host is not None:
                    answer.beside[state.handle] = self.running.get(host) or self.waiting[host]

    def _exchange_shares(self, answer: CheckedAnswer, leaving: Sequence[JobState]) -> None:
        # Undo with a copy: a share that is released and claimed again may come to another GPU.
        before = self.shared.copy()
        for state in leaving:
            assert state.placement is not None  # it runs
            self.free.release(state.placement, state.job)
        for state, placement in answer.placed:
            try:
                self.free.claim(placement, state.job)
            except PolicyError as cause:
                self.shared.become(before)
                raise PolicyError(f"job {state.job.id!r}: {cause}") from None
