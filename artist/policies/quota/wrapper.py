"""Quotas and priorities around any policy: `quota(HOST)`.

    ledger: class and credit of waiting jobs -> the host sees those that may run -> its decisions
      -> a waiting job of an earlier class preempts jobs of later classes

The host decides which of the jobs that it sees runs where. It does not see the others, so its rule
applies among jobs that may compete.

1. The host sees a job within its tenant's quota at once. Between passes, quota that becomes free
   goes to the waiting jobs of its tenant.
2. It sees a job above its quota only while that many GPUs are free beyond those that the jobs it
   sees could take.
3. If a job within quota still waits after the host's answer, and too few GPUs are free, then
   running jobs of later classes are preempted. The last class comes first, and in it the job that
   has run longest, until enough GPUs are free. Of these, only the largest are taken (MAST, section
   4.3).
   The host is asked again a nanosecond later, as after every preemption. Until then these GPUs are
   reserved for the waiting job.
4. A host may let that job wait although enough GPUs are free now. Then no other job is preempted
   for it until the next pass.

To the host, a job that was preempted in 3 is a job whose GPUs left service.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar

from artist.contract import (
    ClusterView,
    Decision,
    Hold,
    JobView,
    Migrate,
    Policy,
    Preempt,
    Start,
    Wait,
    Wake,
    WrapperPolicy,
)
from artist.policies.options import QueueOptions
from artist.policies.quota.host_answers import usable
from artist.policies.quota.ledger import Ledger, fewest, queue_table
from artist.policies.shared.clock import PeriodClock
from artist.rng import FIRST_DRAWS, Draws
from artist.units import Tick, ticks
from artist.workload.tenants import NO_TENANTS, Tenant

_ABOVE = "it was above its tenant's quota, so it could take no GPUs from jobs of later classes"


class QuotaWrapper(WrapperPolicy):
    """A host policy whose jobs have quotas and priorities."""

    Options: ClassVar = QueueOptions

    def __init__(
        self,
        options: QueueOptions,
        host: Policy,
        draws: Draws | None = None,
        tenants: Mapping[str, Tenant] | None = None,
    ) -> None:
        super().__init__(host)
        self.options = options
        period = ticks(options.pass_s)
        self._clock = PeriodClock(period, (draws or FIRST_DRAWS).phase(period))
        self._next_pass: Tick | None = None
        self._wake: Tick = -1
        self._ledger = Ledger(tenants or NO_TENANTS, options)
        self._held_back: dict[int, JobView] = {}
        self._admitted: dict[int, JobView] = {}
        # Admitted jobs that the host let wait although enough GPUs were free.
        self._declined: set[int] = set()
        # Jobs for which others were preempted at the last question; and those for which that was
        # wasted since the last pass, because the host let them wait all the same.
        self._reserved_for: set[int] = set()
        self._wasted_on: set[int] = set()
        # Held back jobs of which it was said that they wait because of the quota.
        self._told: set[int] = set()

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        """The host's decisions about the jobs that may run, and preemptions for jobs that wait."""
        self._clock.asked(view)
        self._observe(view)
        self._rank_anew(view.now)
        entered = self._admit(view.free.total)
        shown = view._replace(waiting=MappingProxyType(self._admitted), entered=entered)
        # GPUs that were freed at the last question belong to these jobs at this one only.
        reserved_for, self._reserved_for = self._reserved_for, set()
        decisions = list(self.host.decide(shown))
        if decisions and not usable(decisions, view):
            return decisions  # the engine says what is wrong
        free = self._free_after(view, decisions)
        self._note_choices(decisions, free, reserved_for)
        cancelled, preemptions = self._preempt_for_waiting(view, decisions, free, reserved_for)
        decisions = [x for x in decisions if isinstance(x, Wake) or x.handle not in cancelled]
        decisions += preemptions
        self._apply(view, decisions, cancelled)
        settled = not preemptions and not reserved_for
        # The host has the last word, so these reasons come first.
        decisions = [*self._waits(view, decisions, free if settled else None), *decisions]
        if self._reserved_for or any(isinstance(x, Preempt) for x in decisions):
            decisions.append(Wake(view.now + 1))
        if self._held_back or self._admitted:
            strike = self._next_pass = self._clock.after(view.now)
            if strike != self._wake:
                self._wake = strike
                decisions.append(Wake(strike))
        return decisions

    def tables(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """The host's tables, and `queue`: waits within quota."""
        return {**self.host.tables(), **queue_table(self._ledger, self.options)}

    # -- before the host ---------------------------------------------------------------

    def _observe(self, view: ClusterView) -> None:
        """Enter in the ledger which jobs finished, arrived or lost their GPUs."""
        for handle in view.finished:
            self._ledger.stop(handle, view.now)
        for job in view.entered:
            if job.handle in self._ledger.running:
                self._ledger.stop(job.handle, view.now)
            self._ledger.enter(job.handle, job.job, view.now)
            self._held_back[job.handle] = job
        self._ledger.promote(view.now)

    def _rank_anew(self, now: Tick) -> None:
        if self._next_pass is not None and now >= self._next_pass:
            self._ledger.rank_all(now)
            self._wasted_on.clear()
            self._next_pass = None

    def _admit(self, free: int) -> list[JobView]:
        """The jobs that enter the host's queue now, because they may run."""
        waiting = self._ledger.waiting
        spare = free - sum(
            waiting[handle].gpus
            for handle in self._admitted
            if handle not in self._declined and waiting[handle].gpus <= free
        )
        entered = []
        for handle in sorted(self._held_back, key=self._key):
            entry = waiting[handle]
            within = entry.within and not (self._reserved_for and handle not in self._reserved_for)
            if within or (entry.gpus <= spare and not self._reserved_for):
                spare -= entry.gpus if entry.gpus <= free else 0
                self._admitted[handle] = self._held_back.pop(handle)
                entered.append(self._admitted[handle])
        return entered

    def _waits(
        self, view: ClusterView, decisions: Sequence[Decision], free: int | None
    ) -> list[Decision]:
        """Which jobs wait because they are above quota. Within it, they would take GPUs that are
        free after the answer, or that jobs of later classes hold.

        None are free while GPUs are reserved. What was said of a job is taken back once the host
        sees it.
        """
        waits: list[Decision] = [Wait(x, "") for x in self._told if x in self._admitted]
        self._told = {x for x in self._told if x in self._held_back}
        untold = self._held_back.keys() - self._told
        if free is None or not untold:
            return waits
        waiting, running = self._ledger.waiting, self._ledger.running
        decided = {x.handle for x in decisions if isinstance(x, Preempt | Migrate | Hold)}
        held = [
            (running[x].rank, job.gpus)
            for x, job in view.running.items()
            if x in running and x not in decided and view.frees(job)
        ]
        free -= sum(waiting[x].gpus for x in self._declined if waiting[x].gpus <= free)
        for handle in sorted(untold):
            entry = waiting[handle]
            later = sum(gpus for rank, gpus in held if rank > entry.priority)
            if not entry.within and entry.gpus <= free + later:
                self._told.add(handle)
                waits.append(Wait(handle, _ABOVE, "quota"))
        return waits

    def _key(self, handle: int) -> tuple[int, float, int]:
        entry = self._ledger.waiting[handle]
        return entry.rank, -entry.credit, handle

    # -- after the host ----------------------------------------------------------------

    def _note_choices(
        self, decisions: Sequence[Decision], free: int, reserved_for: set[int]
    ) -> None:
        """Remember which jobs the host lets wait although enough GPUs are free."""
        started = {x.handle for x in decisions if isinstance(x, Start)}
        waiting = self._ledger.waiting
        declined = {x for x in self._admitted if x not in started and waiting[x].gpus <= free}
        self._declined |= declined
        self._wasted_on |= declined & reserved_for

    def _apply(self, view: ClusterView, decisions: Sequence[Decision], cancelled: set[int]) -> None:
        """Note which jobs start. A job whose start is cancelled waits to be admitted again."""
        for handle in cancelled:
            self._held_back[handle] = self._admitted.pop(handle)
            self._declined.discard(handle)
        for decision in decisions:
            if isinstance(decision, Start):
                self._ledger.start(decision.handle, view.now)
                del self._admitted[decision.handle]
                self._declined.discard(decision.handle)

    def _free_after(self, view: ClusterView, decisions: Sequence[Decision]) -> int:
        free = view.free.total
        for decision in decisions:
            if isinstance(decision, Preempt | Migrate):
                free += view.running[decision.handle].gpus
            if isinstance(decision, Start | Migrate):
                free -= decision.placement.gpus
        return free

    def _preempt_for_waiting(
        self, view: ClusterView, decisions: Sequence[Decision], free: int, reserved_for: set[int]
    ) -> tuple[set[int], list[Decision]]:
        """Find GPUs for waiting jobs within quota.

        Returns the jobs whose starts are cancelled, and the preemptions. A cancelled start costs no
        work, so it comes before a preemption.
        """
        waiting, running = self._ledger.waiting, self._ledger.running
        starts = [x.handle for x in decisions if isinstance(x, Start)]
        starts.sort(key=self._key, reverse=True)
        wanting = [
            handle
            for handle in (*self._admitted, *self._held_back)
            if waiting[handle].within and handle not in self._wasted_on and handle not in starts
        ]
        if not wanting:
            return set(), []
        decided = {x.handle for x in decisions if isinstance(x, Preempt | Migrate | Hold)}
        order = sorted(
            (x for x in running if x not in decided and view.frees(view.running[x])),
            key=lambda x: (-running[x].rank, view.running[x].started, x),
        )
        cancelled: set[int] = set()
        preemptions: list[Decision] = []
        for handle in sorted(wanting, key=self._key):
            entry = waiting[handle]
            if entry.gpus > free:
                refused = self._refused(handle, starts, entry.gpus - free, reserved_for)
                gained = sum(waiting[x].gpus for x in refused)
                later = [(x, running[x].gpus) for x in order if running[x].rank > entry.rank]
                lacking = entry.gpus - free - gained
                victims = fewest(later, lacking) if lacking > 0 else ()
                if victims is None:
                    continue
                self._reserved_for.add(handle)
                cancelled.update(refused)
                starts = [x for x in starts if x not in refused]
                free += gained + sum(running[x].gpus for x in victims)
                order = [x for x in order if x not in victims]
                preemptions += [Preempt(x, f"for a job of class {entry.rank}") for x in victims]
            free -= entry.gpus
        return cancelled, preemptions

    def _refused(
        self, handle: int, starts: Sequence[int], lacking: int, reserved_for: set[int]
    ) -> list[int]:
        """Starts of jobs of later classes that leave a job too few GPUs, the last ones first.

        If others were preempted for the job, it comes before all jobs behind it, also those of its
        own class: else these would take the GPUs that were freed for it.
        """
        waiting, refused = self._ledger.waiting, list[int]()
        for other in starts:
            if lacking <= 0:
                break
            behind = waiting[other].rank > waiting[handle].rank
            if behind or (handle in reserved_for and self._key(other) > self._key(handle)):
                refused.append(other)
                lacking -= waiting[other].gpus
        return refused
