"""The loop: here time moves, and only from here do GPUs change hands.

One instant goes through these stages:

1. drain: handle every event of this tick, in the written order (`events.py`);
2. ask: stop with a question (`next_question`) where there is a reason. A job arrived or finished,
   a waiting job contests a lease that ended, GPUs left or entered service, or a policy asked to be
   woken;
3. answer: check the decisions (`answers.py`), move GPUs, then apply everything else;
4. rate: ask the rate function once about the jobs that changed.

`run` is the loop over these stages; a driver outside may use them one by one. At a question the
simulator can be copied or pickled. Continuing the copy gives the same rows.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from artist.cluster.placement import Placement, tier
from artist.cluster.tree import ClusterTree
from artist.cluster.visiting_order import VisitingOrder
from artist.contract import (
    MOST_JOBS_PER_GPU,
    NO_SHARED_LINKS,
    NOBODY_ON_NOTICE,
    CheckpointRule,
    ClusterView,
    Decision,
    EventSource,
    Hold,
    LinksNow,
    Notice,
    Policy,
    RateFunction,
    Restore,
    Wait,
    Withdraw,
    as_if_alone,
    policy_name,
)
from artist.contract.readable_answer import readable
from artist.engine import invariants, outages
from artist.engine.answers import checked
from artist.engine.events import ARRIVAL, FINISH, LEASE_END, OUTSIDE, WAKE, Event, EventQueue
from artist.engine.holdings import Holdings
from artist.engine.job_state import JobState
from artist.engine.livelock import Livelock
from artist.engine.progress import check_rate
from artist.engine.rows import (
    CANCELLED,
    FINISHED,
    HELD,
    LEASE_ENDED,
    MIGRATED,
    PREEMPTED,
    RE_RATED,
    EndReason,
    OutageRow,
    Rows,
    WaitRow,
)
from artist.engine.shared_holdings import SharedHoldings
from artist.engine.what_if import finishes
from artist.errors import InvariantError, PolicyError, TraceError
from artist.garbage_collector import many_objects
from artist.units import LAST_TICK, SHORTEST_LEASE_S, Tick, counted, ticks
from artist.workload.job import Job, start_cost_s

# A policy needs one wake-up, the next. Each takes 150 bytes until it comes.
MAX_WAKES = 1_000_000


class Simulator:
    """One run of a list of jobs on a cluster.

    `jobs` come in order of arrival; a job's position is its handle. `lease` is how long an
    allocation holds, None for ever. `visiting_order` breaks ties between units. `events` come from
    outside the trace, and `checkpoints` say when jobs save their state. Up to `jobs_per_gpu` jobs
    may share a GPU. With `check` every invariant is verified after every event, at a price.
    """

    def __init__(
        self,
        tree: ClusterTree,
        jobs: Sequence[Job],
        rates: RateFunction,
        *,
        lease: Tick | None = None,
        visiting_order: VisitingOrder | None = None,
        events: EventSource | None = None,
        checkpoints: CheckpointRule | None = None,
        jobs_per_gpu: int = 1,
        check: bool = False,
    ) -> None:
        if not 1 <= jobs_per_gpu <= MOST_JOBS_PER_GPU:
            raise PolicyError(
                f"jobs_per_gpu is {jobs_per_gpu}, expected 1 to {MOST_JOBS_PER_GPU} jobs on a GPU"
            )
        if lease is not None and lease < ticks(SHORTEST_LEASE_S):
            raise PolicyError(
                f"a lease of {lease} ns, expected at least {ticks(SHORTEST_LEASE_S):,}: no "
                "scheduler takes GPUs away that soon; make it longer"
            )
        self.tree = tree
        self.rows = Rows()
        self.now: Tick = 0
        self.lease = lease
        self._jobs = jobs
        self._rates = rates
        self._check = check
        shared = any(job.is_share for job in jobs)
        holdings = SharedHoldings if shared else Holdings
        self._holdings = holdings(tree, jobs, visiting_order)
        self.rows.timeline.gpu_parts = holdings.gpu_parts
        if jobs_per_gpu > 1 and shared:
            raise PolicyError(
                "jobs ask for shares of GPUs, and the policy lets jobs share whole ones "
                "(jobs_per_gpu); leave one of them out"
            )
        self._queue = EventQueue()
        self._arrived = 0
        self._outages = outages.Outages(events)
        self._checkpoints = checkpoints
        self._jobs_per_gpu = jobs_per_gpu
        # What the policy has not heard of yet. A job that its last answer preempted has entered.
        self._entered: list[JobState] = []
        self._lease_ended: list[JobState] = []
        self._finished: list[int] = []
        self._changed: dict[int, JobState] = {}
        self._asking = False
        self._livelock = Livelock()
        self._wakes = 0  # wake-ups that were asked for and are still to come
        self._schedule_arrival()
        self._outages.schedule(self.now, self._queue)

    # -- driving -----------------------------------------------------------------

    def run(self, policy: Policy, on_question: Callable[[Simulator], None] | None = None) -> Rows:
        """Simulate until every job has finished.

        Raises:
            PolicyError: an unlawful decision, or jobs wait and nothing will ever happen.
        """
        name = policy_name(policy)
        with many_objects():
            while (view := self.next_question(policy)) is not None:
                self.answer(policy.decide(view), name)
                if on_question is not None:
                    on_question(self)
        if self.jobs_waiting:
            state = next(iter(self._holdings.waiting.values()))
            first = state.job
            told = state.told
            reason = f"; it waits as {told.reason}" if told is not None and told.reason else ""
            raise PolicyError(
                f"{name} left {counted(self.jobs_waiting, 'job')} waiting with nothing to wait for "
                f"(the first is job {first.id!r}, {counted(first.gpus, 'GPU')}, "
                f"{self._holdings.free.total} free{reason})"
            )
        return self.rows

    def next_question(self, policy: Policy | None = None) -> ClusterView | None:
        """Advance to the next instant at which a policy must be asked; None at the end.

        A question that is not answered yet is asked again. The end of a lease is a question,
        unless `policy` is given and says that no job contests it (`Policy.contests`).
        """
        while not self._asking:
            heap = self._queue.next_events()
            if not heap:
                if self._check and not self._holdings.waiting:
                    invariants.check_rows(self.rows)
                    invariants.check_kinds(self.rows, self.tree)
                return None
            tick = heap[0][0]
            if tick < self.now:
                raise InvariantError(f"time went back from tick {self.now} to {tick}")
            self.now = tick
            # A handled event may push another one at this tick: an arrival, the next outage.
            while heap and heap[0][0] == tick:
                self._handle(self._queue.pop())
                if self._check:
                    invariants.check(self._holdings)
            if self._lease_ended and not self._asking:
                self._ask_about_leases(policy)
            if self._changed and not self._asking:
                self._rate_changed()
        return self.view()

    def _ask_about_leases(self, policy: Policy | None) -> None:
        """Leases ended and nothing else happened: ask, or renew the leases that no job contests."""
        free = self._holdings.free
        if policy is None or self._entered or policy.contests(self._lease_ended, free, self.now):
            self._asking = True
        else:
            self._renew_leases()

    def view(self) -> ClusterView:
        """The question that is being asked."""
        holdings, rates = self._holdings, self._rates
        links, on_notice = rates.links, holdings.on_notice
        if links is not NO_SHARED_LINKS:
            gone = [handle for handle, state in self._changed.items() if state.placement is None]
            links = LinksNow(links, dict.fromkeys(gone))
        return ClusterView(
            self.now,
            holdings.free,
            MappingProxyType(holdings.waiting),
            MappingProxyType(holdings.running),
            self._entered,
            self._lease_ended,
            self._finished,
            rates.alone,
            links,
            self._what_if,
            None,
            MappingProxyType(on_notice) if on_notice else NOBODY_ON_NOTICE,
            kept=holdings.sharing.keys(),
            slowdown=getattr(rates, "slowdown", as_if_alone),
        )

    def _what_if(
        self, answer: Sequence[Decision], policy: Policy, hidden: Collection[int] = ()
    ) -> Mapping[int, Tick]:
        """`ClusterView.what_if` of the question."""
        return finishes(self.without_future(), answer, policy, hidden)

    def answer(self, decisions: Sequence[Decision], policy: str = "the driver") -> None:
        """Apply the answer to the question of `next_question`.

        Raises:
            PolicyError: a decision is unlawful; the message names the policy. Nothing
                has changed then, and the question may be answered again. After any other
                error the simulator is of no use any more.
        """
        if not self._asking:
            raise PolicyError(f"answer of {policy} without a question; call next_question() first")
        try:
            self._apply(decisions)
        except PolicyError as cause:
            raise PolicyError(f"unlawful decision of {policy}: {cause}") from None
        if self._lease_ended:
            self._renew_leases()
        if self._changed:
            self._rate_changed()
        self._asking = False
        if self._livelock.suspected:
            stuck = len(self.rows.jobs) + self.jobs_waiting == self.jobs_total
            dead = stuck and not self._outages.pending
            self._livelock.check(policy, self.now, dead=dead)
        if self._outages.pending:
            self._livelock.check_idle(policy, self._idle(decisions))
        holdings = self._holdings
        held, running, waiting = holdings.gpus_held, len(holdings.running), len(holdings.waiting)
        self.rows.timeline.note(self.now, held, running, waiting)
        self.rows.questions += 1
        if self._check:
            invariants.check(self._holdings)

    def _idle(self, decisions: Sequence[Decision]) -> bool:
        """Whether only outages can happen from now on, and the cluster is whole."""
        holdings = self._holdings
        waiting = bool(holdings.waiting) and not holdings.running and not self._wakes
        arrived = len(self.rows.jobs) + len(holdings.waiting) == len(self._jobs)
        return waiting and arrived and not holdings.withdrawn and not decisions

    def without_future(self) -> Simulator:
        """The same question of a run in which no job arrives any more and nothing fails.

        Its rows start here. It shares all else with this one: copy it before going on.
        """
        twin = copy.copy(self)
        twin._queue = self._queue.without(ARRIVAL, OUTSIDE)
        come = any(kind is ARRIVAL for _, kind, *_ in self._queue)
        twin._jobs = self._jobs[: self._arrived - come]
        twin._arrived = len(twin._jobs)
        twin._outages = outages.Outages(None)
        twin.rows = Rows()
        twin.rows.timeline.gpu_parts = self.rows.timeline.gpu_parts
        twin._livelock = Livelock()
        twin._check = False
        return twin

    def facts(self) -> list[object]:
        """What copies of it need not have of their own: it never changes, or only becomes known."""
        return [self.tree, *self._jobs, *getattr(self._rates, "facts", ())]

    def forget_notices(self) -> None:
        """Let nothing more leave service. GPUs that notices keep out stay out for this run."""
        self._holdings.on_notice.clear()

    def forget_waiting(self, handles: Collection[int]) -> None:
        """Remove some waiting jobs, as if they had never come."""
        for handle in handles:
            del self._holdings.waiting[handle]

    @property
    def jobs(self) -> Sequence[Job]:
        """All jobs of the run, in the order of arrival."""
        return self._jobs

    @property
    def jobs_total(self) -> int:
        """Number of jobs of the run."""
        return len(self._jobs)

    @property
    def jobs_running(self) -> int:
        """Number of running jobs."""
        return len(self._holdings.running)

    @property
    def jobs_waiting(self) -> int:
        """Number of waiting jobs."""
        return len(self._holdings.waiting)

    @property
    def gpus_free(self) -> int:
        """Number of GPUs in service that no job holds."""
        return self._holdings.free.total

    # -- events ------------------------------------------------------------------

    def _handle(self, event: Event) -> None:
        """Let one event happen, unless it is of a job that has been rescheduled since."""
        _, kind, _, handle, epoch = event
        if kind is ARRIVAL:
            self._arrive(handle)
        elif kind is WAKE:
            self._asking = True
            self._livelock.woken(self.now, self.rows.events)
            self._wakes -= 1
        elif kind is OUTSIDE:
            if len(self.rows.jobs) == len(self._jobs):
                return  # all jobs have finished
            self._apply_outage()
        else:
            state = self._holdings.running.get(handle)
            if state is None or state.epoch != epoch:
                return  # of an earlier rate or stay: events are never removed from the queue
            if self.now > LAST_TICK:
                raise self._too_late(state)
            if kind is LEASE_END:
                self._end_lease(state)
            elif kind is FINISH:
                self._finish(state)
            else:
                self._changed[handle] = state
        self.rows.events += 1

    def _too_late(self, state: JobState) -> TraceError:
        return TraceError(
            f"job {state.job.id!r} would still run after {LAST_TICK} ns (292 years) of simulated "
            "time, where the clock ends; give the jobs less work, more GPUs or a faster network"
        )

    def _arrive(self, handle: int) -> None:
        holdings = self._holdings
        state = holdings.arrives(self._jobs[handle], handle, self.now)
        holdings.waiting[handle] = state
        self._entered.append(state)
        self._asking = True
        self._schedule_arrival()

    def _schedule_arrival(self) -> None:
        """Keep one arrival in the queue: the next one."""
        if self._arrived < len(self._jobs):
            arrival = ticks(self._jobs[self._arrived].arrival_s)
            self._queue.push(arrival, ARRIVAL, self._arrived)
            self._arrived += 1

    def _finish(self, state: JobState) -> None:
        self._release(state)
        self._stop(state, FINISHED)
        if not state.progress.complete:
            raise InvariantError(f"job {state.job.id!r} finished before its last iteration")
        self._finished.append(state.handle)
        self._keep_out(state.former_placement)
        self._asking = True
        self.rows.jobs.append(state.row(self.now))

    def _apply_outage(self) -> None:
        """GPUs leave or enter service."""
        event, holdings = self._outages.take(), self._holdings
        outages.expire_notices(holdings, self.now)
        match event:
            case Withdraw(_, placement, outage, position):
                outages.end_notice(holdings, self.rows, placement, self.now)
                # They enter the queue in order of arrival, as after any other loss of GPUs.
                stopped = outages.victims(holdings, placement, position)[::-1]
                for state in stopped:
                    self._release(state)
                    self._stop(state, outages.reason(outage), outage.text if outage else "")
                    self._enter_again(state)
                self.rows.outages.append(
                    OutageRow(self.now, placement, outage, tuple(job.handle for job in stopped))
                )
                # A job without GPUs has no lease to ask about.
                self._lease_ended = [state for state in self._lease_ended if state.gpus]
                outages.withdraw(holdings, placement)
                left = [job.former_placement for job in stopped]
                self._keep_out(placement, *left)
            case Restore(_, placement):
                outages.restore(holdings, placement)
                self.rows.outages.append(OutageRow(self.now, placement, back=True))
                self._keep_out(placement)
            case Notice():
                outages.put_on_notice(holdings, self.rows, event)
        self.rows.note_withdrawn(self.now, sum(holdings.withdrawn.values()))
        self._asking = True
        self._outages.schedule(self.now, self._queue)

    def _keep_out(self, *left: Placement | None) -> None:
        """Take GPUs that have become free out of service if their leaf is on notice."""
        if self._holdings.on_notice:
            for placement in left:
                if placement is not None:
                    outages.keep_out(self._holdings, self.rows, placement.leaves, self.now)

    # -- decisions ---------------------------------------------------------------

    def _apply(self, decisions: Sequence[Decision]) -> None:
        """Check, move the GPUs of all decisions at once, then do everything else."""
        if not decisions:
            readable(decisions, self._holdings.name)  # None is no answer
            self._entered, self._finished = [], []
            return
        holdings = self._holdings
        answer = checked(readable(decisions, holdings.name), holdings, self.now, self._jobs_per_gpu)
        if self._wakes + len(answer.wakes) > MAX_WAKES:
            raise PolicyError(
                f"it waits for more than {MAX_WAKES:,} wake-ups at once; ask for the next one only"
            )
        # The last step that can refuse the answer. Nothing has changed until here, so the question
        # may be answered again.
        holdings.exchange(answer)
        self._wakes += len(answer.wakes)
        self._entered, self._finished = [], []
        if answer.placed or answer.preempted or answer.holds or answer.batches:
            self._livelock.decided()
        for tick in answer.wakes:
            self._queue.push(tick, WAKE, -1)
        ended = {state.handle for state in self._lease_ended} if answer.preempted else ()
        for state in answer.preempted:
            if state.handle in answer.cancelled:
                self._cancel(state, answer.reasons[state.handle])
                continue
            reason = LEASE_ENDED if state.handle in ended else PREEMPTED
            self._stop(state, reason, answer.reasons[state.handle])
            self._enter_again(state)
        for state in answer.moved:
            self._stop(state, MIGRATED, answer.reasons[state.handle])
        for state, placement in answer.placed:
            self._place(state, placement, answer.beside.get(state.handle))
        for state, hold in answer.holds:
            self._hold(state, hold)
        for state, batch in answer.batches:
            state.batch = batch
            self._changed[state.handle] = state  # its rate follows from the batch
        for state, wait in answer.wait_reasons:
            self._tell(state, wait)
        if holdings.on_notice:
            gone = [*answer.preempted, *answer.moved]
            self._keep_out(*(state.former_placement for state in gone))

    def _place(self, state: JobState, placement: Placement, host: JobState | None) -> None:
        """Start or restart a job on GPUs that are claimed for it already, or beside a host."""
        stands_still = ticks(start_cost_s(state.job, again=state.first_start is not None))
        self._holdings.waiting.pop(state.handle, None)
        self._holdings.running[state.handle] = state
        if host is not None:
            self._holdings.join(state, host)
            self._regrouped(state.beside)
        state.place(placement, tier(self.tree, placement), self.now, stands_still)
        if self._checkpoints is not None:
            state.checkpoint = self._checkpoints(state.job, placement)
        self._changed[state.handle] = state
        if self.lease is not None:
            state.lease_due = self.now + self.lease

    def _release(self, state: JobState) -> None:
        """Free the GPUs of a running job, unless others hold them too; or its share of one."""
        if not state.beside or state.job.is_share:
            assert state.placement is not None  # running jobs have GPUs
            self._holdings.free.release(state.placement, state.job)

    def _regrouped(self, handles: Sequence[int]) -> None:
        """Other jobs share the GPUs of these from now on."""
        for handle in handles:
            self._changed[handle] = self._holdings.running[handle]

    def _stop(self, state: JobState, reason: EndReason, note: str = "") -> None:
        """End a job's stay on GPUs that are already released."""
        self._close_interval(state, reason, note)
        if state.beside:
            self._regrouped(state.beside)
            self._holdings.part(state)
        state.unplace(self.now)
        del self._holdings.running[state.handle]
        if reason is not FINISHED:
            state.count_stop(reason)
        self._changed[state.handle] = state

    def _cancel(self, state: JobState, note: str) -> None:
        """A job that lost its GPUs leaves the run with the iterations that it has done."""
        self._stop(state, CANCELLED, note)
        self._finished.append(state.handle)
        self.rows.jobs.append(state.row(self.now))

    def _enter_again(self, state: JobState) -> None:
        """A job that lost its GPUs waits."""
        state.entered = self.now
        self._holdings.waiting[state.handle] = state
        self._entered.append(state)

    def _tell(self, state: JobState, wait: Wait) -> None:
        """Write down why a job waits, unless that is the reason on record."""
        if wait != state.told and (wait.reason or state.told is not None):
            state.told = wait
            self.rows.wait_reasons.append(
                WaitRow(self.now, state.handle, wait.reason, wait.cause, wait.until)
            )

    def _hold(self, state: JobState, hold: Hold) -> None:
        """Let a running job stand still, with its GPUs, until a tick; the phase is kept."""
        if state.rate is not None:  # else it starts at this tick, and has no interval to close
            self._close_interval(state, HELD, hold.reason)
        state.hold(hold)
        if state.rate is not None:
            self._reschedule(state)
            # That has scheduled its lease as well: it must not be renewed a second time.
            self._lease_ended = [ended for ended in self._lease_ended if ended is not state]
        self._changed[state.handle] = state

    # -- rates, leases and rows ----------------------------------------------------

    def _rate_changed(self) -> None:
        """Ask the rate function once, and reschedule the jobs that run at another rate."""
        # Whatever happened to a job at this instant, the rate function hears of it once.
        changed, self._changed = list(self._changed.values()), {}
        running = self._holdings.running
        rates: Mapping[int, Any] = self._rates(self.now, MappingProxyType(running), changed)
        for handle, rate in rates.items():  # `Any` until `check_rate` has seen it
            if handle not in running:
                raise InvariantError(
                    f"a rate for {self._holdings.name(handle)}, which does not run"
                )
            check_rate(rate)
            state = running[handle]
            if state.rate is not None:
                if rate == state.rate and not state.regrouped:
                    continue  # its events stay valid
                # Another `until` alone reschedules the job, but is no new interval.
                if state.regrouped or not rate.same_speed(state.rate):
                    self._close_interval(state, RE_RATED)
            state.set_rate(rate)
            self._reschedule(state)
        for state in changed:
            if state.placement is not None and state.rate is None:
                raise InvariantError(f"job {state.job.id!r} runs, but was given no rate")

    def _reschedule(self, state: JobState) -> None:
        state.schedule(self._queue, self.now, leased=self.lease is not None)

    def _end_lease(self, state: JobState) -> None:
        """Leases are counted from the start of the stay: the next is due a whole number later."""
        assert self.lease is not None  # only leases end
        state.lease_due = self.now + self.lease - (self.now - state.started) % self.lease
        self._lease_ended.append(state)

    def _renew_leases(self) -> None:
        """Give another lease to the jobs whose lease ended and that still have their GPUs."""
        ended, self._lease_ended = self._lease_ended, []
        for state in ended:
            if state.gpus and state.started < self.now:  # else it lost its GPUs, or moved just now
                state.schedule_lease(self._queue)

    def _close_interval(self, state: JobState, reason: EndReason, note: str = "") -> None:
        row = state.close_interval(self.now, reason, note)
        if row is not None:
            self.rows.placements.append(row)
