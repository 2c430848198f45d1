"""Quotas and priorities around any policy: `quota(HOST)`.

    ledger: class and credit of waiting jobs -> the host sees those that may run -> its decisions
      -> a job of an earlier class that waits takes GPUs from jobs of later classes

The host says who of its jobs runs where. It does not see the others, so its rule holds among jobs
that may compete.

1. The host sees a job within its tenant's quota at once.
   Between passes, quota that becomes free goes to the waiting jobs of its tenant.
2. It sees a job above its quota only while so many GPUs are free beside what the jobs that it sees
   could take.
3. If a job within quota waits after the host's answer, and too few GPUs are free, then running jobs
   of later classes lose theirs: the last class first, in it those that have run longest, until it
   is enough; then only the largest of them (MAST, section 4.3). The host is asked again a
   nanosecond later, as after every preemption. Until then nobody else gets these GPUs.
4. A host may let the job wait although enough GPUs are free now. Then nobody else falls for this
   job until the next pass.

To the host, a job that lost its GPUs in 3 is one whose GPUs left service.
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
    Wake,
    WrapperPolicy,
)
from artist.policies.options import QueueOptions
from artist.policies.quota.host_answers import usable
from artist.policies.quota.ledger import Ledger, fewest, queue_table
from artist.policies.shared.clock import Clock
from artist.rng import FIRST_DRAWS, Draws
from artist.units import Tick, ticks
from artist.workload.tenants import NO_TENANTS, Tenant


class Quota(WrapperPolicy):
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
        self._clock = Clock(period, (draws or FIRST_DRAWS).phase(period))
        self._next_pass: Tick | None = None
        self._waked: Tick = -1
        self._ledger = Ledger(tenants or NO_TENANTS, options)
        self._hidden: dict[int, JobView] = {}
        self._shown: dict[int, JobView] = {}
        # Shown jobs that the host let wait although enough GPUs were free.
        self._declined: set[int] = set()
        # Jobs for which others fell at the last question; and, since the last pass, in vain.
        self._promised: set[int] = set()
        self._in_vain: set[int] = set()

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        """The host's decisions about the jobs that may run, and who falls for a job that waits."""
        self._clock.asked(view)
        self._hear(view)
        self._pass(view.now)
        entered = self._show(view.free.total)
        shown = view._replace(waiting=MappingProxyType(self._shown), entered=entered)
        # A list of its own: the host must not lose jobs that start while it looks.
        owed, self._promised = self._promised, set()
        decisions = list(self.host.decide(shown))
        if decisions and not usable(decisions, view):
            return decisions  # the engine says what is wrong
        free = self._free_after(view, decisions)
        self._note_choices(decisions, free, owed)
        taken_back, fallen = self._fight(view, decisions, free, owed)
        decisions = [x for x in decisions if isinstance(x, Wake) or x.handle not in taken_back]
        decisions += fallen
        self._apply(view, decisions, taken_back)
        if self._promised or any(isinstance(x, Preempt) for x in decisions):
            decisions.append(Wake(view.now + 1))
        if self._hidden or self._shown:
            strike = self._next_pass = self._clock.after(view.now)
            if strike != self._waked:
                self._waked = strike
                decisions.append(Wake(strike))
        return decisions

    def tables(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """The host's tables, and `queue`: waits within quota."""
        return {**self.host.tables(), **queue_table(self._ledger, self.options)}

    # -- before the host ---------------------------------------------------------------

    def _hear(self, view: ClusterView) -> None:
        for handle in view.finished:
            self._ledger.stop(handle, view.now)
        for job in view.entered:
            if job.handle in self._ledger.running:
                self._ledger.stop(job.handle, view.now)
            self._ledger.enter(job.handle, job.job, view.now)
            self._hidden[job.handle] = job
        self._ledger.promote(view.now)

    def _pass(self, now: Tick) -> None:
        if self._next_pass is not None and now >= self._next_pass:
            self._ledger.rank_all(now)
            self._in_vain.clear()
            self._next_pass = None

    def _show(self, free: int) -> list[JobView]:
        """Show the host the jobs that may run; they enter its queue."""
        waiting = self._ledger.waiting
        spare = free - sum(
            waiting[handle].gpus
            for handle in self._shown
            if handle not in self._declined and waiting[handle].gpus <= free
        )
        entered = []
        for handle in sorted(self._hidden, key=self._key):
            entry = waiting[handle]
            within = entry.within and not (self._promised and handle not in self._promised)
            if within or (entry.gpus <= spare and not self._promised):
                spare -= entry.gpus if entry.gpus <= free else 0
                self._shown[handle] = self._hidden.pop(handle)
                entered.append(self._shown[handle])
        return entered

    def _key(self, handle: int) -> tuple[int, float, int]:
        entry = self._ledger.waiting[handle]
        return entry.rank, -entry.credit, handle

    # -- after the host ----------------------------------------------------------------

    def _note_choices(self, decisions: Sequence[Decision], free: int, owed: set[int]) -> None:
        """Remember whom the host lets wait although enough GPUs are free."""
        started = {x.handle for x in decisions if isinstance(x, Start)}
        waiting = self._ledger.waiting
        declined = {x for x in self._shown if x not in started and waiting[x].gpus <= free}
        self._declined |= declined
        self._in_vain |= declined & owed

    def _apply(
        self, view: ClusterView, decisions: Sequence[Decision], taken_back: set[int]
    ) -> None:
        """Note who starts. A job that may not enters the host's queue anew later."""
        for handle in taken_back:
            self._hidden[handle] = self._shown.pop(handle)
            self._declined.discard(handle)
        for decision in decisions:
            if isinstance(decision, Start):
                self._ledger.start(decision.handle, view.now)
                del self._shown[decision.handle]
                self._declined.discard(decision.handle)

    def _free_after(self, view: ClusterView, decisions: Sequence[Decision]) -> int:
        free = view.free.total
        for decision in decisions:
            if isinstance(decision, Preempt | Migrate):
                free += view.running[decision.handle].gpus
            if isinstance(decision, Start | Migrate):
                free -= decision.placement.gpus
        return free

    def _fight(
        self, view: ClusterView, decisions: Sequence[Decision], free: int, owed: set[int]
    ) -> tuple[set[int], list[Decision]]:
        """Find GPUs for jobs within quota that wait: who may not start, and who falls."""
        waiting, running = self._ledger.waiting, self._ledger.running
        starts = [x.handle for x in decisions if isinstance(x, Start)]
        starts.sort(key=self._key, reverse=True)
        wanting = [
            handle
            for handle in (*self._shown, *self._hidden)
            if waiting[handle].within and handle not in self._in_vain and handle not in starts
        ]
        if not wanting:
            return set(), []
        decided = {x.handle for x in decisions if isinstance(x, Preempt | Migrate | Hold)}
        order = sorted(
            (x for x in running if x not in decided and view.frees(view.running[x])),
            key=lambda x: (-running[x].rank, view.running[x].started, x),
        )
        taken_back: set[int] = set()
        fallen: list[Decision] = []
        for handle in sorted(wanting, key=self._key):
            entry = waiting[handle]
            if entry.gpus > free:
                refused = self._refused(handle, starts, entry.gpus - free, owed)
                gained = sum(waiting[x].gpus for x in refused)
                later = [(x, running[x].gpus) for x in order if running[x].rank > entry.rank]
                lacking = entry.gpus - free - gained
                victims = fewest(later, lacking) if lacking > 0 else ()
                if victims is None:
                    continue
                self._promised.add(handle)
                taken_back.update(refused)
                starts = [x for x in starts if x not in refused]
                free += gained + sum(running[x].gpus for x in victims)
                order = [x for x in order if x not in victims]
                fallen += [Preempt(x, f"for a job of class {entry.rank}") for x in victims]
            free -= entry.gpus
        return taken_back, fallen

    def _refused(
        self, handle: int, starts: Sequence[int], lacking: int, owed: set[int]
    ) -> list[int]:
        """Starts of jobs of later classes that leave a job too few GPUs, the last ones first.

        Where others fell for the job, it comes before all jobs behind it.
        """
        waiting, refused = self._ledger.waiting, list[int]()
        for other in starts:
            if lacking <= 0:
                break
            behind = waiting[other].rank > waiting[handle].rank
            if behind or (handle in owed and self._key(other) > self._key(handle)):
                refused.append(other)
                lacking -= waiting[other].gpus
        return refused
