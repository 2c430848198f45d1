"""Quotas and priorities around any policy: `quota(HOST)`.

    ledger: class and credit of waiting jobs -> the host sees those that may run -> its decisions
      -> a waiting job of an earlier class preempts jobs of later classes

The host decides which of the jobs that it sees runs where. It does not see the others, so its rule
applies among jobs that may compete.

1. The host sees a job within its tenant's quota at once. Between passes, quota that becomes free
   goes to the waiting jobs of its tenant. It also sees a job that could be within quota in place of
   mates, jobs of its tenant and priority. If the host starts that one, mates give way
   (`exchange.py`). If none can, the start falls, and the host is asked again a nanosecond later.
   Where the first waiting job blocks the host, it would block other tenants too. So such a host
   sees no more jobs than may run, and mates are charged in turn: none behind one that waits.
2. It sees a job above its quota only while that many GPUs are free beyond those that the jobs it
   sees could take.
3. The host may preempt jobs, but not one of an earlier class for one of a later class. Such a start
   falls, with the preemptions that serve it alone (`contract/gates.py`). A nanosecond later the
   host is asked again, and the jobs of earlier classes keep their GPUs then (`ClusterView.kept`).
4. If a job within quota still waits after the host's answer, and too few GPUs are free, then
   running jobs of later classes are preempted. The last class comes first, and in it the job that
   has run longest, until enough GPUs are free. Of these, only the largest are taken (MAST, section
   4.3).
   The host is asked again a nanosecond later, as after every preemption. Until then these GPUs are
   reserved for the waiting job. After that, what is left of them is offered to all others at once.
   A job that got GPUs at one of these questions keeps them at the others.
5. A host may let that job wait although enough GPUs are free now. Then no other job is preempted
   for it until the next pass.

To the host, a job that was preempted in 4 is a job whose GPUs left service. Copies of the run that
the host tries answers on have only the jobs that it sees.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
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
    WaitCause,
    Wake,
    WrapperPolicy,
    policy_name,
)
from artist.contract.gates import counts_of, gpus_left, without
from artist.errors import ConfigError
from artist.policies.options import QueueOptions
from artist.policies.quota.exchange import Exchange, candidates
from artist.policies.quota.host_answers import usable
from artist.policies.quota.ledger import Ledger, Mates, fewest, queue_table
from artist.policies.shared.clock import PeriodClock
from artist.rng import FIRST_DRAWS, Draws
from artist.units import Tick, ticks
from artist.workload.tenants import NO_TENANTS, Tenant

_CLASSES = "for a job of an earlier class"
_BEHIND = "jobs before it waited for more GPUs, and the policy lets none pass"
_ABOVE = "it was above its tenant's quota, so it could take no GPUs from jobs of later classes"


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
        self.reads_gpu_kinds = False  # a quota by kind would not be kept
        if self.has_quotas:
            raise ConfigError(
                f"quota: {policy_name(host)} has quotas and priorities already; leave the outer "
                "quota(...) away"
            )
        self.has_quotas = True
        self.options = options
        period = ticks(options.pass_s)
        self._clock = PeriodClock(period, (draws or FIRST_DRAWS).phase(period))
        self._next_pass: Tick | None = None
        self._wake: Tick = -1
        # Behind a mate that waits none may start, so the order of arrival charges them.
        self._in_turn = bool(getattr(host, "head_blocks", False))
        self._ledger = Ledger(tenants or NO_TENANTS, options, in_turn=self._in_turn)
        self._held_back: dict[int, JobView] = {}
        self._admitted: dict[int, JobView] = {}
        # Admitted jobs above quota that may take spare GPUs; the others of these start in place of
        # mates only. And jobs that were to start so in this instant, but no mate gave way.
        self._on_spare: set[int] = set()
        self._refused_now: set[int] = set()
        # Admitted jobs that the host let wait although enough GPUs were free.
        self._declined: set[int] = set()
        # Jobs for which others were preempted at the last question; and those for which that was
        # wasted since the last pass, because the host let them wait all the same.
        self._reserved_for: set[int] = set()
        self._wasted_on: set[int] = set()
        # The first of the questions that follow each other within nanoseconds, and the last one.
        # Jobs that started since the first keep their GPUs.
        self._instant: Tick = -1
        self._asked: Tick = -2
        # Running jobs that the host wanted to preempt in this instant for jobs of later classes.
        self._kept: set[int] = set()
        # Jobs that were to lose their GPUs in this instant. Where a gate turns
        # a start down, they keep them, and the host would be asked again without end.
        self._preempted: set[int] = set()
        # What was said of held back jobs: why they wait.
        self._told: dict[int, str] = {}

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        """The host's decisions about the jobs that may run, and preemptions for jobs that wait."""
        self._clock.asked(view)
        self._observe(view)
        self._rank_anew(view.now)
        if view.now > self._asked + 1:
            self._instant = view.now
            self._kept.clear()
            self._preempted.clear()
            self._refused_now.clear()
        self._asked = view.now
        entered = self._admit(view.free.total)
        shown = view._replace(
            waiting=MappingProxyType(self._admitted),
            entered=entered,
            what_if=partial(view.what_if, hidden=list(self._held_back)),
            kept=self._keep(view),
        )
        # GPUs that were freed at the last question belong to these jobs at this one only.
        reserved_for, self._reserved_for = self._reserved_for, set()
        answer = list(self.host.decide(shown))
        if answer and not usable(answer, view):
            return answer  # the engine says what is wrong
        exchange, refused = self._exchange(view, answer, reserved_for)
        decisions, put_off = without(answer, refused, view, _CLASSES) if refused else (answer, [])
        decisions, fallen, lost_to = self._in_order_of_class(view, decisions)
        fallen.update(put_off)
        exchange.settle(decisions, fallen)
        if refused:  # the host might have served others instead, so it is asked again
            spared = self._spared_from(refused, answer, decisions)
            if spared <= self._kept:
                self._refused_now |= refused
            lost_to |= spared
            self._reserved_for |= reserved_for - {
                x.handle for x in decisions if isinstance(x, Start)
            }
        else:
            free = self._free_after(view, decisions)
            self._note_choices(decisions, fallen, free, reserved_for)
        decisions, cancelled, preemptions = self._preempt_for_waiting(
            view, decisions, fallen, reserved_for
        )
        decisions += preemptions
        waiting = self._ledger.waiting
        served = {waiting[x].mates for x in self._reserved_for - reserved_for}
        self._refused_now -= {x for x in self._refused_now if waiting[x].mates in served}
        exchange.settle(decisions, fallen | cancelled)
        exchange.commit()
        free = self._free_after(view, decisions)
        self._apply(view, decisions, fallen | cancelled)
        self._ledger.promote(view.now)
        again = bool(refused) or not lost_to <= self._kept
        self._kept |= lost_to
        settled = not preemptions and not reserved_for and not again
        # The host has the last word, so these reasons come first.
        decisions = [*self._waits(view, decisions, free if settled else None), *decisions]
        preempted = {x.handle for x in decisions if isinstance(x, Preempt)} - self._preempted
        self._preempted |= preempted
        if again or self._reserved_for or preempted or self._would_admit(free, fallen):
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

    def _keep(self, view: ClusterView) -> Collection[int]:
        """The running jobs that keep their GPUs at this question."""
        if view.now == self._instant:
            return view.kept
        fresh = [x for x, job in view.running.items() if job.started >= self._instant]
        return self._kept.union(view.kept, fresh)

    def _spare(self, free: int) -> int:
        """Of the free GPUs, those that the jobs which the host sees could not take."""
        waiting = self._ledger.waiting
        return free - sum(
            waiting[handle].gpus
            for handle in self._entitled()
            if handle not in self._declined and waiting[handle].gpus <= free
        )

    def _entitled(self) -> list[int]:
        """The jobs that may run, other than in place of mates."""
        waiting = self._ledger.waiting
        return [x for x in self._admitted if waiting[x].within or x in self._on_spare]

    def _would_admit(self, free: int, fallen: Collection[int]) -> bool:
        """Whether the host should see a job at once that it has not seen at this question."""
        hidden = self._held_back.keys() - set(fallen)
        if not hidden:
            return False
        waiting = self._ledger.waiting
        if any(waiting[x].within for x in hidden):
            return True
        if next(self._fit(hidden, self._spare(free), free), None) is not None:
            return True
        return next(self._candidates(hidden), None) is not None

    def _fit(self, handles: Collection[int], spare: int, free: int) -> Iterator[int]:
        """Of waiting jobs, those within quota and those for which there are spare GPUs."""
        waiting, passed = self._ledger.waiting, set[Mates]()
        head = None
        if self._in_turn:
            # Behind a job for which too few GPUs are free, such a host would let another one wait,
            # and that one would keep jobs within quota waiting later.
            heads = [x for x in waiting if waiting[x].within or x in self._on_spare]
            head = min((x for x in heads if waiting[x].gpus > free), default=None)
        else:  # what does not fit is in nobody's way
            handles = [x for x in handles if waiting[x].within or waiting[x].gpus <= spare]
        for handle in sorted(handles, key=self._key):
            entry = waiting[handle]
            stuck = entry.mates in passed or (head is not None and head < handle)
            if entry.within or (entry.gpus <= spare and not stuck):
                spare -= entry.gpus if entry.gpus <= free else 0
                yield handle
            elif self._in_turn:
                passed.add(entry.mates)

    def _candidates(self, hidden: Collection[int]) -> Iterator[int]:
        """Of hidden jobs, those that may start in place of mates."""
        if self._in_turn:
            return iter(())
        return candidates(self._ledger, [x for x in hidden if x not in self._refused_now])

    def _admit(self, free: int) -> list[JobView]:
        """The jobs that enter the host's queue now, because they may run."""
        hidden, waiting = self._held_back.keys(), self._ledger.waiting
        if self._reserved_for:
            mates = {waiting[x].mates for x in self._reserved_for}
            may_start = {x for x in hidden if waiting[x].within and x in self._reserved_for}
            may_start.update(x for x in self._candidates(hidden) if waiting[x].mates in mates)
        else:
            others = {*hidden, *self._admitted}.difference(self._entitled())
            may_start = set(self._fit(others, self._spare(free), free))
            self._on_spare.update(x for x in may_start if not waiting[x].within)
            may_start.update(self._candidates(hidden))
        entered = []
        for handle in sorted(may_start.intersection(self._held_back), key=self._key):
            self._admitted[handle] = self._held_back.pop(handle)
            entered.append(self._admitted[handle])
        return entered

    def _waits(
        self, view: ClusterView, decisions: Sequence[Decision], free: int | None
    ) -> list[Decision]:
        """Which jobs wait because they are above quota. Within it, they would take GPUs that are
        free after the answer, or that jobs of later classes hold. Where the host lets no job pass
        the head of the queue, those for which enough GPUs are free wait behind others.

        None are free while GPUs are reserved. What was said of a job is taken back once the host
        sees it.
        """
        waits: list[Decision] = [Wait(x, "") for x in self._told if x in self._admitted]
        self._told = {x: words for x, words in self._told.items() if x in self._held_back}
        # Where all jobs wait behind the head, what keeps one waiting changes.
        asked = self._held_back.keys() - (() if self._in_turn else self._told)
        if free is None or not asked:
            return waits
        waiting, running = self._ledger.waiting, self._ledger.running
        decided = {x.handle for x in decisions if isinstance(x, Preempt | Migrate | Hold)}
        held = [
            (running[x].rank, job.gpus)
            for x, job in view.running.items()
            if x in running and x not in decided and view.frees(job)
        ]
        free -= sum(waiting[x].gpus for x in self._declined if waiting[x].gpus <= free)
        for handle in sorted(asked):
            entry, words = waiting[handle], ""
            if entry.within:
                continue
            if self._in_turn and entry.gpus <= free:
                words = _BEHIND
            elif entry.gpus <= free + sum(gpus for rank, gpus in held if rank > entry.priority):
                words = _ABOVE
            if words != self._told.get(handle, ""):
                self._told[handle] = words
                cause: WaitCause = "quota" if words == _ABOVE else "policy"
                waits.append(Wait(handle, words, cause))
        return waits

    def _key(self, handle: int) -> tuple[int, float, int]:
        entry = self._ledger.waiting[handle]
        return entry.rank, -entry.credit, handle

    # -- after the host ----------------------------------------------------------------

    def _exchange(
        self, view: ClusterView, answer: Sequence[Decision], reserved_for: set[int]
    ) -> tuple[Exchange, set[int]]:
        """Charge jobs that start in place of mates. Returns also those for which none gave way."""
        waiting = self._ledger.waiting
        starts = [x.handle for x in answer if isinstance(x, Start)]
        above = [x for x in starts if not waiting[x].within]
        mates = sorted(self._entitled(), key=self._key) if above else []
        mates = [x for x in mates if x not in starts]
        if mates:
            free = self._free_after(view, answer) + sum(waiting[x].gpus for x in above)
            mates = [x for x in mates if not self._may_preempt(view, answer, x, free)]
        exchange, refused = Exchange(self._ledger, answer, mates, view.now), set[int]()
        for handle in above:
            if exchange.carries(handle, reserved_for):
                continue
            if handle not in self._on_spare and (reserved_for or not exchange.spares(handle)):
                refused.add(handle)
        self._on_spare -= exchange.gave_way
        return exchange, refused

    def _spared_from(
        self, refused: Collection[int], answer: Sequence[Decision], decisions: Sequence[Decision]
    ) -> set[int]:
        """Jobs that refused ones would have preempted, and that are no mates of theirs. The host
        may choose mates when it is asked again.
        """
        ledger = self._ledger
        mates = {ledger.waiting[x].mates for x in refused}
        spared = {x.handle for x in answer if isinstance(x, Preempt)}
        spared -= {x.handle for x in decisions if isinstance(x, Preempt)}
        return {x for x in spared if ledger.running[x].mates not in mates}

    def _may_preempt(
        self, view: ClusterView, answer: Sequence[Decision], handle: int, free: int
    ) -> bool:
        """Whether jobs of later classes will lose GPUs for a job, so that the host may choose then
        whether it or a mate gets them.
        """
        entry = self._ledger.waiting[handle]
        if not entry.within or handle in self._wasted_on or entry.gpus <= free:
            return False
        return fewest(self._later(view, answer, entry.rank), entry.gpus - free) is not None

    def _in_order_of_class(
        self, view: ClusterView, decisions: Sequence[Decision]
    ) -> tuple[list[Decision], set[int], set[int]]:
        """The decisions without those that take GPUs from an earlier class for a later one.

        And the jobs that do not start, and those that would have lost their GPUs.
        """
        kept, fallen, lost_to = list(decisions), set[int](), set[int]()
        while True:
            refused, losers = self._inversions(view, kept)
            if not refused:
                return kept, fallen, lost_to
            kept, put_off = without(kept, refused, view, _CLASSES)
            fallen.update(put_off)
            lost_to |= losers

    def _inversions(
        self, view: ClusterView, decisions: Sequence[Decision]
    ) -> tuple[set[int], set[int]]:
        """Starts and moves without which a job of an earlier class keeps its GPUs; and such jobs.

        The last classes are refused first, for the most urgent job first.
        """
        refused, losers = set[int](), set[int]()
        preempted = [x.handle for x in decisions if isinstance(x, Preempt)]
        if not preempted:
            return refused, losers
        takers = [x for x in decisions if isinstance(x, Start | Migrate)]
        takers.sort(key=lambda x: (self._rank(x.handle), x.handle), reverse=True)
        left = gpus_left(decisions, view)
        for handle in sorted(preempted, key=lambda x: (self._rank(x), x)):
            held = view.running[handle].placement
            assert held is not None  # running jobs have GPUs
            short = {leaf: count - left[leaf] for leaf, count in counts_of(held).items()}
            chosen = []
            for taker in takers:
                if self._rank(taker.handle) <= self._rank(handle) or max(short.values()) <= 0:
                    break
                gives = counts_of(taker.placement)
                if taker.handle not in refused and any(short.get(x, 0) > 0 for x in gives):
                    chosen.append(taker.handle)
                    short = {leaf: lacks - gives.get(leaf, 0) for leaf, lacks in short.items()}
            if chosen and max(short.values()) <= 0:
                refused.update(chosen)
                losers.add(handle)
        return refused, losers

    def _rank(self, handle: int) -> int:
        """The class of a job."""
        ledger = self._ledger
        return (ledger.waiting.get(handle) or ledger.running[handle]).rank

    def _note_choices(
        self,
        decisions: Sequence[Decision],
        fallen: Collection[int],
        free: int,
        reserved_for: set[int],
    ) -> None:
        """Remember which jobs the host lets wait although enough GPUs are free."""
        started = {x.handle for x in decisions if isinstance(x, Start)}.union(fallen)
        waiting = self._ledger.waiting
        declined = {x for x in self._entitled() if x not in started and waiting[x].gpus <= free}
        self._declined |= declined
        self._wasted_on |= declined & reserved_for

    def _apply(self, view: ClusterView, decisions: Sequence[Decision], cancelled: set[int]) -> None:
        """Note which jobs start. A job whose start is cancelled waits to be admitted again."""
        for handle in cancelled:
            self._held_back[handle] = self._admitted.pop(handle)
            self._declined.discard(handle)
            self._on_spare.discard(handle)
        for decision in decisions:
            if isinstance(decision, Start):
                self._ledger.start(decision.handle, view.now)
                self._refused_now.discard(decision.handle)
                del self._admitted[decision.handle]
                self._declined.discard(decision.handle)
                self._on_spare.discard(decision.handle)

    def _free_after(self, view: ClusterView, decisions: Sequence[Decision]) -> int:
        free = view.free.total
        for decision in decisions:
            if isinstance(decision, Preempt | Migrate):
                free += view.running[decision.handle].gpus
            if isinstance(decision, Start | Migrate):
                free -= decision.placement.gpus
        return free

    def _preempt_for_waiting(
        self,
        view: ClusterView,
        decisions: list[Decision],
        fallen: Collection[int],
        reserved_for: set[int],
    ) -> tuple[list[Decision], set[int], list[Decision]]:
        """Find GPUs for waiting jobs within quota.

        Returns the decisions that stand, the jobs whose starts are cancelled, and the preemptions.
        A cancelled start costs no work, so it comes before a preemption.
        """
        waiting, running = self._ledger.waiting, self._ledger.running
        starts = [x.handle for x in decisions if isinstance(x, Start)]
        starts.sort(key=self._key, reverse=True)
        wanting = [
            handle
            for handle in (*self._admitted, *self._held_back)
            if waiting[handle].within and handle not in self._wasted_on and handle not in starts
        ]
        cancelled: set[int] = set()
        preemptions: list[Decision] = []
        wanted = 0
        for handle in sorted(wanting, key=self._key):
            entry = waiting[handle]
            gained = sum(running[x.handle].gpus for x in preemptions if isinstance(x, Preempt))
            free = self._free_after(view, decisions) + gained - wanted
            if entry.gpus > free:
                refused = self._refused(handle, starts, entry.gpus - free, reserved_for)
                standing = without(decisions, refused, view, _CLASSES)[0] if refused else decisions
                lacking = entry.gpus - (self._free_after(view, standing) + gained - wanted)
                victims = (
                    fewest(self._later(view, [*standing, *preemptions], entry.rank), lacking)
                    if lacking > 0
                    else ()
                )
                if victims is None:
                    continue
                self._reserved_for.add(handle)
                decisions = standing
                cancelled.update(refused)
                starts = [x for x in starts if x not in refused]
                preemptions += [Preempt(x, f"for a job of class {entry.rank}") for x in victims]
            wanted += entry.gpus
        return decisions, cancelled, preemptions

    def _later(
        self, view: ClusterView, decisions: Sequence[Decision], rank: int
    ) -> list[tuple[int, int]]:
        """(Handle, GPUs) of running jobs of later classes, in the order in which they would lose
        their GPUs: the last class first, in it the job that has run longest.

        Not those that a decision names, or that got their GPUs in this instant.
        """
        running = self._ledger.running
        decided = {x.handle for x in decisions if isinstance(x, Preempt | Migrate | Hold)}
        order = [
            (-entry.rank, view.running[x].started, x)
            for x, entry in running.items()
            if entry.rank > rank
            and x not in decided
            and view.frees(view.running[x])
            and not self._instant <= view.running[x].started < view.now
        ]
        return [(x, running[x].gpus) for _, _, x in sorted(order)]

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
