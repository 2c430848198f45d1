"""Quotas and priorities around any policy: `quota(HOST)`.

    ledger: class and credit of waiting jobs -> the host sees those that may run -> its decisions
      -> a waiting job of an earlier class preempts jobs of later classes

The host decides which of the jobs that it sees runs where. It does not see the others, so its rule
applies among jobs that may compete.

1. The host sees a job within its tenant's quota at once. Between passes, quota that becomes free
   goes to the waiting jobs of its tenant. The host also sees a job that could be within quota in
   place of mates, which are jobs of its tenant and priority. If the host starts it, mates give way
   (`exchange.py`). If none can, the start is dropped, and the host is asked again a nanosecond
   later. A host that lets no job pass the head of its queue would block other tenants too. So it
   sees only jobs that may run, and mates are charged in turn: none behind a mate that waits.
2. The host sees a job above quota only while enough GPUs are free beyond those that the jobs it
   already sees could take.
3. The host may preempt jobs, but not one of an earlier class for one of a later class. Such a start
   is dropped, with the preemptions that serve it alone (`contract/gates.py`). The host is asked
   again a nanosecond later, and is told that the jobs of earlier classes keep their GPUs
   (`ClusterView.kept`).
4. If a job within quota still waits after the host's answer, and too few GPUs are free, running
   jobs of later classes are preempted: the last class first, in it the job that has run longest,
   until enough GPUs are free. Of these jobs, only the largest lose theirs (MAST, section 4.3).
   The host is asked again a nanosecond later, as after every preemption. At that question the GPUs
   are reserved for the waiting job; the rest of them is then offered to all others at once. A job
   that got GPUs at one of these questions keeps them at the next ones.
5. The host may let that job wait although enough GPUs are free now. Then no other job is preempted
   for it until the next pass.
6. A host in rounds places no jobs between them (`in_round`), so points 4 and 5 apply only at
   rounds.
7. A waiting job is charged for the GPUs that were submitted. Under a host that re-divides GPUs in
   rounds, an elastic job is charged for the fewest on which it would start (`fewest_gpus`). A
   running job is charged for the GPUs that it has. It keeps its class while it grows, and its
   tenant then has less quota left.

To the host, a job preempted in point 4 looks as if its GPUs had left service. Copies of the run, on
which the host tries answers, contain only the jobs that it sees.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar

from artist.contract import (
    ClusterView,
    Decision,
    JobView,
    Migrate,
    Policy,
    Preempt,
    Start,
    Wake,
    WrapperPolicy,
)
from artist.contract.gates import without
from artist.errors import ConfigError
from artist.policies.quota.admission import Admission
from artist.policies.quota.exchange import Exchange
from artist.policies.quota.host_answers import usable
from artist.policies.quota.host_ledger import HostLedger
from artist.policies.quota.jobs_above import SEEN, SPARE
from artist.policies.quota.ledger import LedgerEntry, queue_table
from artist.policies.quota.options import QueueOptions
from artist.policies.quota.preemption import (
    CLASSES,
    QuotaPreemption,
    free_after,
    in_order_of_class,
    of_later_classes,
)
from artist.policies.quota.reasons import WaitReasons
from artist.policies.shared.clock import PeriodClock
from artist.policies.shared.gpu_counts import GpuCounts
from artist.rng import FIRST_DRAWS, Draws
from artist.units import Tick, ticks
from artist.workload.tenants import NO_TENANTS, Tenant


class QuotaWrapper(WrapperPolicy):
    """A host policy whose jobs have quotas and priorities."""

    Options: ClassVar = QueueOptions
    has_quotas: bool

    def __init__(
        self,
        options: QueueOptions,
        host: Policy,
        draws: Draws | None = None,
        tenants: Mapping[str, Tenant] | None = None,
    ) -> None:
        super().__init__(host)
        # A host that reads kinds still obeys them, but a quota by kind would not be kept.
        self.obeys_gpu_kinds = self.obeys_gpu_kinds or self.reads_gpu_kinds
        self.reads_gpu_kinds = False
        if self.has_quotas:
            raise ConfigError(
                "policy quota: the policy inside has quotas and priorities already; leave out the "
                "outer quota(...)"
            )
        self.has_quotas = True
        self.options = options
        period = ticks(options.pass_s)
        self._clock = PeriodClock(period, (draws or FIRST_DRAWS).phase(period))
        self._next_pass: Tick | None = None
        self._wake: Tick = -1
        # If the head of the host's queue blocks, no mate may start behind one that waits, so mates
        # are charged in turn. Jobs of other classes do pass the head.
        in_turn, self.head_blocks = self.head_blocks, False
        self._ledger = HostLedger(tenants or NO_TENANTS, options, in_turn=in_turn)
        self._admission = Admission(self._ledger, in_turn=in_turn)
        self._reasons = WaitReasons(self._ledger, self._admission, in_turn=in_turn)
        # Jobs for which others were preempted at the last question; and jobs that the host let wait
        # since the last pass although others had been preempted for them.
        self._reserved_for: set[int] = set()
        self._wasted_on: set[int] = set()
        # The times of the first question of this instant (a series of questions a nanosecond apart)
        # and of the last question. Jobs that started in this instant keep their GPUs.
        self._instant: Tick = -1
        self._asked: Tick = -2
        self._moved: set[int] = set()  # jobs that were given other GPUs at the last question
        # Running jobs that the host wanted to preempt in this instant for jobs of later classes.
        self._kept: set[int] = set()
        # Jobs that were to lose their GPUs in this instant. If a gate refuses the start that needs
        # the GPUs, they keep them; without this set the host would be asked again without end.
        self._preempted: set[int] = set()

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        """The host's decisions about the jobs that may run, and preemptions for jobs that wait."""
        self._clock.asked(view)
        self._observe(view)
        self._rank_anew(view.now)
        self._begin_instant(view.now)
        entered = self._admission.admit(GpuCounts(view.free), self._reserved_for)
        answer = list(self.host.decide(self._shown(view, entered)))
        if answer and not usable(answer, view):
            return answer  # the engine says what is wrong
        # GPUs that were freed at the last question belong to these jobs at this one only.
        reserved_for, self._reserved_for = self._reserved_for, set()
        exchange, refused = self._exchange(view, answer, reserved_for)
        decisions, put_off = without(answer, refused, view, CLASSES) if refused else (answer, [])
        decisions, cancelled, spared = in_order_of_class(self._ledger, view, decisions)
        cancelled.update(put_off)
        exchange.settle(decisions, cancelled)
        if refused:
            spared |= self._ask_for_others(refused, answer, decisions, reserved_for)
        elif self.in_round:
            self._note_choices(view, decisions, cancelled, reserved_for)
        if self.in_round:
            preemption = self._preempt_for_waiting(view, decisions, reserved_for)
            decisions = preemption.decisions + preemption.preemptions
            cancelled |= preemption.cancelled
            exchange.settle(decisions, cancelled)
        exchange.commit()
        self._apply(view, decisions, cancelled)
        again = bool(refused) or not spared <= self._kept
        self._kept |= spared
        free = free_after(view, decisions)
        waits = self._reasons.lapsed(entered)
        if not (self._reserved_for or reserved_for or again):  # else the instant goes on
            waits += self._reasons.found(view, decisions, free)
        wakes = self._wakes(view, decisions, again=again, free=free, cancelled=cancelled)
        # The host has the last word, so the reasons come first.
        return [*waits, *decisions, *wakes]

    def tables(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """The host's tables, and `queue`: waits within quota."""
        return {**self.host.tables(), **queue_table(self._ledger, self.options)}

    # -- before the host ---------------------------------------------------------------

    def _observe(self, view: ClusterView) -> None:
        """Note in the ledger which jobs finished, arrived or lost their GPUs."""
        if view.free.hosts is not None:
            self._ledger.kinds = frozenset(view.cluster.kinds)
        for handle in view.finished:
            self._ledger.stop(handle, view.now)
        for handle in sorted(self._moved.intersection(view.running)):  # a gate may have kept it
            self._ledger.resize(handle, view.running[handle].gpus, view.now)
        self._moved.clear()
        for job in view.entered:
            if job.handle in self._ledger.running:
                self._ledger.stop(job.handle, view.now)
            self._ledger.enter(job.handle, job.job, view.now, gpus=self.fewest_gpus(view, job))
            self._admission.enter(job)
        self._ledger.promote(view.now)

    def _rank_anew(self, now: Tick) -> None:
        if self._next_pass is not None and now >= self._next_pass:
            self._ledger.rank_all(now)
            self._wasted_on.clear()
            self._next_pass = None

    def _begin_instant(self, now: Tick) -> None:
        """Forget the last instant, unless this question follows within a nanosecond."""
        if now > self._asked + 1:
            self._instant = now
            self._kept.clear()
            self._preempted.clear()
            self._admission.refused.clear()
        self._asked = now

    def _shown(self, view: ClusterView, entered: Sequence[JobView]) -> ClusterView:
        """The view of the host, without hidden jobs."""
        unseen = self._admission.hidden

        def what_if(
            answer: Sequence[Decision], policy: Policy, hidden: Collection[int] = ()
        ) -> Mapping[int, int]:
            return view.what_if(answer, policy, [*unseen, *hidden])

        return view._replace(
            waiting=MappingProxyType(self._admission.seen),
            entered=entered,
            what_if=what_if,
            kept=self._keep(view),
        )

    def _keep(self, view: ClusterView) -> Collection[int]:
        """The running jobs that keep their GPUs at this question."""
        if view.now == self._instant:
            return view.kept
        fresh = [x for x, job in view.running.items() if job.started >= self._instant]
        return self._kept.union(view.kept, fresh)

    # -- after the host ----------------------------------------------------------------

    def _exchange(
        self, view: ClusterView, answer: Sequence[Decision], reserved_for: set[int]
    ) -> tuple[Exchange, set[int]]:
        """Charge jobs that start in place of mates; also returns those for which none gave way."""
        waiting = self._ledger.waiting
        starts = {x.handle: waiting[x.handle] for x in answer if isinstance(x, Start)}
        above = {x: entry for x, entry in starts.items() if not entry.within}
        exchange = Exchange(self._ledger, answer, self._mates(view, answer, starts), view.now)
        refused = set[int]()
        for handle, entry in above.items():
            if exchange.carries(handle, reserved_for) or entry.place == SPARE:
                continue
            if reserved_for or not exchange.spares(handle):
                refused.add(handle)
        for handle in exchange.gave_way:
            self._ledger.show(handle, SEEN)
        return exchange, refused

    def _mates(
        self, view: ClusterView, answer: Sequence[Decision], starts: Mapping[int, LedgerEntry]
    ) -> list[int]:
        """Waiting mates of jobs that start above quota, if they may run; the most urgent first.

        Mates for which jobs of later classes will lose GPUs are left out: the host then chooses
        which mate gets those GPUs.
        """
        waiting = self._ledger.waiting
        asked = {entry.mates for entry in starts.values() if not entry.within}
        if not asked:
            return []
        mates = [
            x for x in self._admission.entitled() if waiting[x].mates in asked and x not in starts
        ]
        if not mates:
            return []
        above = {x for x, entry in starts.items() if not entry.within}
        standing = [x for x in answer if not (isinstance(x, Start) and x.handle in above)]
        free = free_after(view, standing)
        # By class and accepted kinds: what jobs of later classes could give up.
        gains: dict[tuple[int, tuple[str, ...]], int] = {}

        def may_preempt(handle: int) -> bool:
            entry = waiting[handle]
            lacking = entry.gpus - free.left(entry.accepts)
            if not entry.within or handle in self._wasted_on or lacking <= 0:
                return False
            key = entry.rank, entry.accepts
            if key not in gains:
                victims = of_later_classes(self._ledger, view, answer, entry, self._instant)
                gains[key] = sum(gpus for _, gpus in victims)
            return lacking <= gains[key]

        return sorted((x for x in mates if not may_preempt(x)), key=self._admission.key)

    def _ask_for_others(
        self,
        refused: set[int],
        answer: Sequence[Decision],
        decisions: Sequence[Decision],
        reserved_for: set[int],
    ) -> set[int]:
        """Let the host be asked again, as it might serve other jobs than the refused ones.

        Returns the jobs that would have been preempted for refused ones, except their mates: the
        host may preempt these when it is asked again.
        """
        ledger = self._ledger
        mates = {ledger.waiting[x].mates for x in refused}
        spared = {x.handle for x in answer if isinstance(x, Preempt)}
        spared -= {x.handle for x in decisions if isinstance(x, Preempt)}
        spared = {x for x in spared if ledger.running[x].mates not in mates}
        if spared <= self._kept:
            self._admission.refused |= refused
        started = {x.handle for x in decisions if isinstance(x, Start)}
        self._reserved_for |= reserved_for - started
        return spared

    def _note_choices(
        self,
        view: ClusterView,
        decisions: Sequence[Decision],
        cancelled: Collection[int],
        reserved_for: set[int],
    ) -> None:
        """Remember which jobs the host lets wait although enough GPUs are free."""
        free = free_after(view, decisions)
        started = {x.handle for x in decisions if isinstance(x, Start)}.union(cancelled)
        waiting, entitled = self._ledger.waiting, self._admission.entitled()
        declined = {
            x
            for x in entitled
            if x not in started and waiting[x].gpus <= free.left(waiting[x].accepts)
        }
        self._admission.declined |= declined
        self._wasted_on |= declined & reserved_for

    def _preempt_for_waiting(
        self, view: ClusterView, decisions: list[Decision], reserved_for: set[int]
    ) -> QuotaPreemption:
        """Find GPUs for waiting jobs within quota.

        Refused mates of these jobs may be seen again: the host chooses which mate gets the GPUs.
        """
        found = QuotaPreemption(self._ledger, view, decisions, self._instant, self._admission.key)
        found.serve(self._wasted_on, reserved_for)
        self._reserved_for |= found.reserved_for
        served, refused = self._reserved_for - reserved_for, self._admission.refused
        if served:
            refused -= {x for x in refused if self._ledger.are_rivals(x, served)}
        return found

    def _apply(
        self, view: ClusterView, decisions: Sequence[Decision], cancelled: Collection[int]
    ) -> None:
        """Note which jobs start. A job whose start is cancelled waits to be admitted again."""
        for handle in cancelled:
            self._admission.hide(handle)
        for decision in decisions:
            if isinstance(decision, Start):
                self._ledger.start(decision.handle, view.now)
                self._admission.start(decision.handle)
            if isinstance(decision, Start | Migrate):
                self._ledger.resize(decision.handle, decision.placement.gpus, view.now)
                self._moved.add(decision.handle)
        self._ledger.promote(view.now)

    def _wakes(
        self,
        view: ClusterView,
        decisions: Sequence[Decision],
        *,
        again: bool,
        free: GpuCounts,
        cancelled: Collection[int],
    ) -> list[Decision]:
        """When the policy is to be asked again: at the next pass, and in a nanosecond if jobs lose
        GPUs or the host is to see other jobs.
        """
        wakes: list[Decision] = []
        preempted = {x.handle for x in decisions if isinstance(x, Preempt)} - self._preempted
        self._preempted |= preempted
        again = again or bool(self._reserved_for or preempted)
        if again or self._admission.would_admit(free, cancelled):
            wakes.append(Wake(view.now + 1))
        if self._ledger.waiting:
            strike = self._next_pass = self._clock.after(view.now)
            if strike != self._wake:
                self._wake = strike
                wakes.append(Wake(strike))
        return wakes
