"""The loop: the only place where time moves and GPUs change hands.

One instant goes through these stages:

1. drain: handle every event of this tick, in the written order (`events.py`);
2. ask: if a job arrived, finished, ended its lease or a policy asked to be woken,
   stop with a question (`next_question`);
3. answer: check the decisions, apply them together, releases before claims;
4. rate: ask the rate function once about the jobs that changed.

`run` is the loop over that; anybody else may drive it from outside. At a question the
whole simulator can be copied (`copy.deepcopy`, or pickled in memory), and the copy goes on
to the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.order import VisitingOrder
from artist.cluster.placement import Placement, tier
from artist.cluster.tree import ClusterTree
from artist.contract import ClusterView, Contests, Decision, Policy
from artist.engine import checks
from artist.engine.answers import Jobs, checked, exchange
from artist.engine.events import ARRIVAL, FINISH, LEASE_END, RATE_END, WAKE, Event, EventQueue
from artist.engine.job_state import JobState
from artist.engine.livelock import Livelock
from artist.engine.rows import (
    FINISHED,
    HELD,
    LEASE_ENDED,
    MIGRATED,
    PREEMPTED,
    RE_RATED,
    EndReason,
    Rows,
)
from artist.errors import InvariantError, PolicyError
from artist.garbage import many_objects
from artist.network.alone import RateFunction
from artist.units import Tick, ticks
from artist.workload.job import Job


class Simulator:
    """One run of a list of jobs on a cluster.

    `jobs` come in order of arrival; a job's index is its `order`. `lease` is how long
    an allocation holds, None for ever; `order` breaks ties between units. With `check`
    every invariant is verified after every event, at a price.
    """

    def __init__(
        self,
        tree: ClusterTree,
        jobs: Sequence[Job],
        rates: RateFunction,
        *,
        lease: Tick | None = None,
        order: VisitingOrder | None = None,
        check: bool = False,
    ) -> None:
        self.tree = tree
        self.rows = Rows()
        self.now: Tick = 0
        self.lease = lease
        self._jobs = jobs
        self._rates = rates
        self._check = check
        self._free = FreeGpus(tree, order)
        self._queue = EventQueue()
        self._waiting: dict[int, JobState] = {}
        self._running: dict[int, JobState] = {}
        self._known = Jobs(jobs, self._waiting, self._running)
        self._arrived = 0
        self._entered: list[JobState] = []
        self._lease_ended: list[JobState] = []
        self._finished: list[int] = []
        self._changed: dict[int, JobState] = {}
        self._asking = False
        self._livelock = Livelock()
        self._schedule_arrival()

    # -- driving -----------------------------------------------------------------

    def run(self, policy: Policy, on_question: Callable[[Simulator], None] | None = None) -> Rows:
        """Simulate until every job has finished.

        Raises:
            PolicyError: an unlawful decision, or jobs wait and nothing will ever happen.
        """
        name = type(policy).__name__
        contests = getattr(policy, "contests", None)
        with many_objects():
            while (view := self.next_question(contests)) is not None:
                self.answer(policy.decide(view), name)
                if on_question is not None:
                    on_question(self)
        if self._waiting:
            first = next(iter(self._waiting.values()))
            raise PolicyError(
                f"{name} left {len(self._waiting)} jobs waiting with nothing to wait for "
                f"(the first is job {first.job.id!r}, {first.job.gpus} GPUs, "
                f"{self._free.total} free)"
            )
        return self.rows

    def next_question(self, contests: Contests | None = None) -> ClusterView | None:
        """Advance to the next instant at which a policy must be asked; None at the end.

        A question that is not answered yet is asked again. Lease ends are questions, unless
        `contests` (the policy's, see `BasePolicy.contests`) says that nobody contests them.
        """
        heap = self._queue.heap
        while not self._asking:
            if not heap:
                if self._check and not self._waiting:
                    checks.check_rows(self.rows)
                return None
            tick = heap[0][0]
            if tick < self.now:
                raise InvariantError(f"time went back from tick {self.now} to {tick}")
            self.now = tick
            while heap and heap[0][0] == tick:
                self._handle(self._queue.pop())
                if self._check:
                    checks.check(self.tree, self._free, self._waiting, self._running)
            if self._lease_ended and not self._asking:
                self._ask_about_leases(contests)
            if self._changed and not self._asking:
                self._rate_changed()
        return self.view()

    def _ask_about_leases(self, contests: Contests | None) -> None:
        """Leases ended and nothing else happened: ask, or renew what nobody contests."""
        if contests is None or self._entered or contests(self._lease_ended, self._free, self.now):
            self._asking = True
        else:
            self._renew_leases()

    def view(self) -> ClusterView:
        """The question that is being asked."""
        return ClusterView(
            self.now,
            self._free,
            MappingProxyType(self._waiting),
            MappingProxyType(self._running),
            self._entered,
            self._lease_ended,
            self._finished,
            self._rates.alone_iteration_s,
        )

    def answer(self, decisions: Sequence[Decision], policy: str = "the driver") -> None:
        """Apply the answer to the question of `next_question`.

        Raises:
            PolicyError: a decision is unlawful; the message names the policy. Nothing
                has changed then, and the question may be answered again.
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
            seen = len(self.rows.jobs) + len(self._waiting)
            self._livelock.check(policy, self.now, dead=seen == len(self._jobs))
        held = self.tree.gpus - self._free.total
        self.rows.note(self.now, held, len(self._running), len(self._waiting))
        self.rows.questions += 1
        if self._check:
            checks.check(self.tree, self._free, self._waiting, self._running)

    @property
    def jobs_total(self) -> int:
        """Number of jobs of the run."""
        return len(self._jobs)

    @property
    def jobs_running(self) -> int:
        """Number of running jobs."""
        return len(self._running)

    @property
    def jobs_waiting(self) -> int:
        """Number of waiting jobs."""
        return len(self._waiting)

    def hold(self, order: int, until: Tick) -> None:
        """Let a running job stand still, with its GPUs, until a tick; the phase is kept.

        Raises:
            PolicyError: the job does not run, or the tick is not in the future.
        """
        state = self._known.that_runs(order)
        if until <= self.now:
            raise PolicyError(f"job {state.job.id!r} held until {until}, not after {self.now}")
        self._close_interval(state, HELD)
        state.progress.hold(until)
        state.productive_from = max(state.productive_from, until)
        self._reschedule(state)
        self._changed[order] = state
        if not self._asking:
            self._rate_changed()

    # -- events ------------------------------------------------------------------

    def _handle(self, event: Event) -> None:
        _, kind, _, order, epoch = event
        if kind is ARRIVAL:
            self._arrive(order)
        elif kind is WAKE:
            self._asking = True
            self._livelock.woken(self.now, self.rows.events)
        else:
            state = self._running.get(order)
            if state is None or state.epoch != epoch:
                return
            if kind is LEASE_END:
                self._end_lease(state)
            elif kind is FINISH:
                self._finish(state)
            else:
                self._changed[order] = state
        self.rows.events += 1

    def _arrive(self, order: int) -> None:
        state = JobState(self._jobs[order], order, self.now)
        self._waiting[order] = state
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
        assert state.placement is not None  # running jobs have GPUs
        self._free.release(state.placement)
        self._stop(state, FINISHED)
        if not state.progress.complete:
            raise InvariantError(f"job {state.job.id!r} finished before its last iteration")
        self._finished.append(state.order)
        self._asking = True
        self.rows.jobs.append(state.row(self.now))

    # -- decisions ---------------------------------------------------------------

    def _apply(self, decisions: Sequence[Decision]) -> None:
        """Check, move the GPUs of all decisions at once, then do everything else."""
        if not decisions:
            self._entered, self._finished = [], []
            return
        answer = checked(decisions, self._known, self.now)
        exchange(self._free, answer)
        self._entered, self._finished = [], []
        if answer.placed or answer.preempted:
            self._livelock.decided()
        for tick in answer.wakes:
            self._queue.push(tick, WAKE, -1)
        ended = {state.order for state in self._lease_ended} if answer.preempted else ()
        for state in answer.preempted:
            self._stop(state, LEASE_ENDED if state.order in ended else PREEMPTED)
            state.entered = self.now
            self._waiting[state.order] = state
            self._entered.append(state)
        for state in answer.moved:
            self._stop(state, MIGRATED)
        for state, placement in answer.placed:
            self._place(state, placement)

    def _place(self, state: JobState, placement: Placement) -> None:
        """Start or restart a job on GPUs that are already claimed for it."""
        restart = 0 if state.first_start is None else ticks(state.job.restart_s)
        self._waiting.pop(state.order, None)
        self._running[state.order] = state
        state.place(placement, tier(self.tree, placement), self.now, restart)
        self._changed[state.order] = state
        if self.lease is not None:
            state.lease_due = self.now + self.lease

    def _stop(self, state: JobState, reason: EndReason) -> None:
        """End a job's stay on GPUs that are already released."""
        self._close_interval(state, reason)
        state.unplace(self.now)
        del self._running[state.order]
        if reason is MIGRATED:
            state.migrations += 1
        elif reason is not FINISHED:
            state.preemptions += 1
        self._changed[state.order] = state

    # -- rates, leases and rows ----------------------------------------------------

    def _rate_changed(self) -> None:
        """Ask the rate function once, and reschedule whoever runs at another rate."""
        changed, self._changed = list(self._changed.values()), {}
        answers = self._rates(self.now, MappingProxyType(self._running), changed)
        for order, rate in answers.items():
            if order not in self._running:
                raise InvariantError(f"a rate for {self._known.name(order)}, which does not run")
            state = self._running[order]
            if rate == state.rate:
                continue
            if state.rate is not None:
                self._close_interval(state, RE_RATED)
            state.rate = rate
            state.progress.set_rate(rate)
            self._reschedule(state)
        for state in changed:
            if state.placement is not None and state.rate is None:
                raise InvariantError(f"job {state.job.id!r} runs, but was given no rate")

    def _reschedule(self, state: JobState) -> None:
        """Put the events of a job's present rate into the queue; older ones become stale."""
        state.epoch += 1
        progress, order, epoch = state.progress, state.order, state.epoch
        state.finish = finish = progress.finish()
        self._queue.push(finish, FINISH, order, epoch)
        if self.lease is not None:
            self._schedule_lease(state)
        if state.rate is not None and state.rate.until_iteration is not None:
            until = progress.reach(state.rate.until_iteration)
            if self.now < until < finish:
                self._queue.push(until, RATE_END, order, epoch)

    def _schedule_lease(self, state: JobState) -> None:
        """A lease ends at the first iteration boundary at or after it is due."""
        end = state.progress.boundary(state.lease_due)
        if end < state.finish:
            self._queue.push(end, LEASE_END, state.order, state.epoch)

    def _end_lease(self, state: JobState) -> None:
        """The next lease is due at the next multiple of its length since the job started."""
        assert self.lease is not None  # only leases end
        if self.now < state.lease_due:
            return  # scheduled before a hold, and renewed since
        state.lease_due = self.now + self.lease - (self.now - state.started) % self.lease
        self._lease_ended.append(state)

    def _renew_leases(self) -> None:
        """Jobs whose lease ended and that nobody touched keep their GPUs."""
        ended, self._lease_ended = self._lease_ended, []
        for state in ended:
            if state.gpus and state.started < self.now:
                self._schedule_lease(state)

    def _close_interval(self, state: JobState, reason: EndReason) -> None:
        row = state.close_interval(self.now, reason)
        if row is not None:
            self.rows.placements.append(row)
