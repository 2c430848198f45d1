"""The gate between a policy and the engine: no job is placed on units that will leave service.

The engine refuses such decisions. A policy that reads `ClusterView.on_notice` makes none. Another
policy may give a job the GPUs that it takes from a job on notice. The first job then waits, and
enters the queue again at the next question. Jobs that would have lost their GPUs only for it keep
them (`artist/contract/gates.py`).

Leases of jobs on notice are renewed without a question, because no job could get these GPUs.
"""

from __future__ import annotations

from collections.abc import Sequence

from artist.cluster.free_gpus import FreeGpus
from artist.contract import (
    ClusterView,
    Decision,
    JobView,
    Migrate,
    Policy,
    Preempt,
    Start,
    Wait,
    Wake,
    WrapperPolicy,
    policy_name,
)
from artist.contract.gates import without
from artist.units import Tick

TOLD = "the GPUs that it would get are about to leave service"


class NoticeGate(WrapperPolicy):
    """A gate around a policy that hides leases of jobs on notice, and refuses placements there."""

    def __init__(self, host: Policy) -> None:
        super().__init__(host)
        self._put_off: list[int] = []
        """Jobs that the policy believes to have started. At the next question they enter again."""
        self._on_notice: frozenset[int] = frozenset()

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        """The host's answer, without placements on units on notice."""
        self._on_notice = frozenset(view.on_notice)
        entered = [*(view.waiting[handle] for handle in self._put_off), *view.entered]
        ended = self._may_leave(view.lease_ended)
        self._put_off = []
        decisions = self.host.decide(view._replace(entered=entered, lease_ended=ended))
        return self._mended(decisions, view) if self._on_notice else decisions

    @property
    def called(self) -> str:
        """The host's name, since no user asks for a gate."""
        return policy_name(self.host)

    def contests(self, ended: Sequence[JobView], free: FreeGpus, now: Tick) -> bool:
        """What the host says about the leases of jobs that are not on notice."""
        left = self._may_leave(ended)
        return bool(left) and self.host.contests(left, free, now)

    def _may_leave(self, jobs: Sequence[JobView]) -> Sequence[JobView]:
        """The jobs that are not on notice."""
        return [job for job in jobs if not self._there(job)] if self._on_notice else jobs

    def _there(self, job: JobView) -> bool:
        return job.placement is not None and not self._on_notice.isdisjoint(job.placement.leaves)

    def _mended(self, decisions: Sequence[Decision], view: ClusterView) -> Sequence[Decision]:
        refused = {
            x.handle
            for x in decisions
            if isinstance(x, Start | Migrate) and not self._on_notice.isdisjoint(x.placement.leaves)
        }
        if not refused:
            return decisions
        kept, self._put_off = without(decisions, refused, view, TOLD)
        put_off = set(self._put_off)
        for x in decisions:
            if isinstance(x, Start) and x.handle in put_off:
                until = [view.on_notice[y] for y in x.placement.leaves if y in self._on_notice]
                kept.append(Wait(x.handle, TOLD, "notice", _lapses(max(until), view.now)))
        # Ask again. This ends, because each time jobs have left the units on notice.
        if any(isinstance(x, Preempt | Migrate) and x.handle in view.running for x in kept):
            kept.append(Wake(view.now + 1))
        return kept


def _lapses(outage: Tick, now: Tick) -> Tick | None:
    """When the reason ends: at the outage, which then keeps the job waiting itself."""
    return outage if outage > now else None
