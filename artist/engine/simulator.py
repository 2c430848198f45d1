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

from artist.cluster.placement import Placement, tier
from artist.cluster.state import FreeGpus
from artist.cluster.tree import ClusterTree
from artist.engine import invariants
from artist.engine.events import Event, EventKind, EventQueue
from artist.engine.jobs import JobState
from artist.engine.rates import RateFunction
from artist.engine.rows import EndReason, JobRow, PlacementRow, Rows, TimelineRow
from artist.errors import InvariantError, PolicyError
from artist.policies.base import ClusterView, Decision, Migrate, Policy, Preempt, Start, Wake
from artist.units import Tick, ticks
from artist.workload.job import Job


class Simulator:
    """One run of a list of jobs on a cluster.

    `jobs` come in order of arrival; a job's index is its `order`. `lease` is how long
    an allocation holds, None for ever. With `check` every invariant is verified after
    every event, at a price.
    """

    def __init__(
        self,
        tree: ClusterTree,
        jobs: Sequence[Job],
        rates: RateFunction,
        *,
        lease: Tick | None = None,
        check: bool = False,
    ) -> None:
        self.tree = tree
        self.rows = Rows()
        self.now: Tick = 0
        self.lease = lease
        self._jobs = jobs
        self._rates = rates
        self._check = check
        self._free = FreeGpus(tree)
        self._queue = EventQueue()
        self._waiting: dict[int, JobState] = {}
        self._running: dict[int, JobState] = {}
        self._arrived = 0
        self._entered: list[JobState] = []
        self._lease_ended: list[JobState] = []
        self._finished: list[int] = []
        self._changed: dict[int, JobState] = {}
        self._asking = False
        self._schedule_arrival()

    # -- driving -----------------------------------------------------------------

    def run(self, policy: Policy, on_question: Callable[[Simulator], None] | None = None) -> Rows:
        """Simulate until every job has finished.

        Raises:
            PolicyError: an unlawful decision, or jobs wait and nothing will ever happen.
        """
        name = type(policy).__name__
        while (view := self.next_question()) is not None:
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

    def next_question(self) -> ClusterView | None:
        """Advance to the next instant at which a policy must be asked; None at the end."""
        while (tick := self._queue.next_tick) is not None:
            self.now = tick
            while self._queue.next_tick == tick:
                self._handle(self._queue.pop())
                if self._check:
                    invariants.check(self.tree, self._free, self._waiting, self._running)
            if self._asking:
                return self.view()
            self._rate_changed()
        if self._check and not self._waiting:
            invariants.check_rows(self.rows)
        return None

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
            PolicyError: a decision is unlawful; the message names the policy.
        """
        self._entered = []
        self._finished = []
        try:
            self._apply(decisions)
        except PolicyError as cause:
            raise PolicyError(f"unlawful decision of {policy}: {cause}") from None
        self._renew_leases()
        self._rate_changed()
        self._asking = False
        self._write_timeline()
        self.rows.questions += 1
        if self._check:
            invariants.check(self.tree, self._free, self._waiting, self._running)

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
        """Let a running job stand still, with its GPUs, until a tick; the phase is kept."""
        state = self._running[order]
        self._close_interval(state, EndReason.HELD)
        state.progress.hold(until)
        state.productive_from = until
        self._reschedule(state)

    # -- events ------------------------------------------------------------------

    def _handle(self, event: Event) -> None:
        kind = event.kind
        if kind is EventKind.ARRIVAL:
            self._arrive(event)
        elif kind is EventKind.WAKE:
            self._asking = True
        else:
            state = self._running.get(event.job)
            if state is None or state.epoch != event.epoch:
                return
            if kind is EventKind.FINISH:
                self._finish(state)
            elif kind is EventKind.LEASE_END:
                self._lease_ended.append(state)
                self._asking = True
            else:
                self._changed[state.order] = state
        self.rows.events += 1

    def _arrive(self, event: Event) -> None:
        state = JobState(self._jobs[event.job], event.job, event.tick)
        self._waiting[event.job] = state
        self._entered.append(state)
        self._asking = True
        self._schedule_arrival()

    def _schedule_arrival(self) -> None:
        """Keep one arrival in the queue: the next one."""
        if self._arrived < len(self._jobs):
            arrival = ticks(self._jobs[self._arrived].arrival_s)
            self._queue.push(arrival, EventKind.ARRIVAL, self._arrived)
            self._arrived += 1

    def _finish(self, state: JobState) -> None:
        self._stop(state, EndReason.FINISHED)
        if not state.progress.complete:
            raise InvariantError(f"job {state.job.id!r} finished before its last iteration")
        self._finished.append(state.order)
        self._asking = True
        assert state.first_start is not None  # it ran, so it started
        self.rows.jobs.append(
            JobRow(
                state.job,
                state.order,
                state.arrival,
                state.first_start,
                self.now,
                state.run_ticks(self.now),
                state.preemptions,
                state.migrations,
            )
        )

    # -- decisions ---------------------------------------------------------------

    def _apply(self, decisions: Sequence[Decision]) -> None:
        """Check everything that can be checked beforehand, then release, then claim."""
        placed: list[tuple[JobState, Placement]] = []
        stopped: list[tuple[JobState, EndReason]] = []
        seen: set[int] = set()
        for decision in decisions:
            if isinstance(decision, Wake):
                self._wake(decision)
                continue
            if decision.job in seen:
                raise PolicyError(f"job {decision.job} is decided upon twice")
            seen.add(decision.job)
            if isinstance(decision, Start):
                state = self._known(decision.job, self._waiting, "waiting")
                placed.append((state, self._checked(state, decision.placement)))
            else:
                state = self._known(decision.job, self._running, "running")
                if isinstance(decision, Migrate):
                    placed.append((state, self._checked(state, decision.placement)))
                    stopped.append((state, EndReason.MIGRATED))
                elif isinstance(decision, Preempt):
                    ended = state in self._lease_ended
                    stopped.append((state, EndReason.LEASE_ENDED if ended else EndReason.PREEMPTED))
        for state, reason in stopped:
            self._stop(state, reason)
            if reason is not EndReason.MIGRATED:
                state.entered = self.now
                self._waiting[state.order] = state
                self._entered.append(state)
        for state, placement in placed:
            self._place(state, placement)

    def _known(self, order: int, among: dict[int, JobState], what: str) -> JobState:
        try:
            return among[order]
        except KeyError:
            raise PolicyError(f"job {order} is not {what}") from None

    def _checked(self, state: JobState, placement: Placement) -> Placement:
        job, gpus = state.job, placement.gpus
        if not job.gpus_min <= gpus <= job.gpus_max:
            raise PolicyError(
                f"job {job.id!r} placed on {gpus} GPUs, but it runs on "
                f"{job.gpus_min} to {job.gpus_max}"
            )
        if list(placement.leaves) != sorted(set(placement.leaves)):
            raise PolicyError(f"job {job.id!r}: placement lists leaves twice or out of order")
        return placement

    def _wake(self, decision: Wake) -> None:
        if decision.at <= self.now:
            raise PolicyError(f"wake-up at tick {decision.at} is not after now ({self.now})")
        self._queue.push(decision.at, EventKind.WAKE, -1)

    def _place(self, state: JobState, placement: Placement) -> None:
        try:
            self._free.claim(placement)
        except PolicyError as cause:
            raise PolicyError(f"job {state.job.id!r}: {cause}") from None
        restart = 0 if state.first_start is None else ticks(state.job.restart_s)
        self._waiting.pop(state.order, None)
        self._running[state.order] = state
        state.place(placement, tier(self.tree, placement), self.now, restart)
        self._changed[state.order] = state

    def _stop(self, state: JobState, reason: EndReason) -> None:
        """Take a running job's GPUs."""
        self._close_interval(state, reason)
        assert state.placement is not None  # running jobs have GPUs
        self._free.release(state.placement)
        state.unplace(self.now)
        del self._running[state.order]
        if reason is EndReason.MIGRATED:
            state.migrations += 1
        elif reason is not EndReason.FINISHED:
            state.preemptions += 1
        self._changed[state.order] = state

    # -- rates, leases and rows ----------------------------------------------------

    def _rate_changed(self) -> None:
        """Ask the rate function once, and reschedule whoever runs at another rate."""
        if not self._changed:
            return
        changed, self._changed = list(self._changed.values()), {}
        answers = self._rates(self.now, MappingProxyType(self._running), changed)
        for order, rate in answers.items():
            state = self._running[order]
            if rate == state.rate:
                continue
            if state.rate is not None:
                self._close_interval(state, EndReason.RE_RATED)
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
        finish = progress.finish()
        self._queue.push(finish, EventKind.FINISH, order, epoch)
        if self.lease is not None:
            self._schedule_lease(state, finish)
        if state.rate is not None and state.rate.until_iteration is not None:
            until = progress.reach(state.rate.until_iteration)
            if self.now < until < finish:
                self._queue.push(until, EventKind.RATE_END, order, epoch)

    def _schedule_lease(self, state: JobState, finish: Tick) -> None:
        """A lease ends at the first iteration boundary at or after a multiple of its length."""
        assert self.lease is not None  # the caller tested it
        leases = (self.now - state.started) // self.lease + 1
        end = state.progress.boundary(state.started + leases * self.lease)
        if end < finish:
            self._queue.push(end, EventKind.LEASE_END, state.order, state.epoch)

    def _renew_leases(self) -> None:
        """Jobs whose lease ended and that nobody touched keep their GPUs."""
        ended, self._lease_ended = self._lease_ended, []
        for state in ended:
            if state.placement is not None and state.started < self.now:
                self._schedule_lease(state, state.progress.finish())

    def _close_interval(self, state: JobState, reason: EndReason) -> None:
        """Settle the progress and write the row of the interval that ends now."""
        now, start, rate = self.now, state.interval_start, state.rate
        assert state.placement is not None  # running jobs have GPUs
        assert rate is not None  # and a rate
        whole = state.progress.settle(now)
        drops = reason not in (EndReason.RE_RATED, EndReason.HELD)
        lost = state.progress.stop() if drops else 0
        stalled = max(0, min(now, state.productive_from) - start)
        if now > start:
            self.rows.placements.append(
                PlacementRow(
                    state.order,
                    state.placement,
                    state.tier,
                    start,
                    now,
                    whole,
                    rate.iteration_s,
                    rate.alone_iteration_s,
                    stalled,
                    lost,
                    rate.source,
                    reason,
                )
            )
        state.interval_start = now

    def _write_timeline(self) -> None:
        held = self.tree.gpus - self._free.total
        row = TimelineRow(self.now, held, len(self._running), len(self._waiting))
        timeline = self.rows.timeline
        if not timeline or timeline[-1][1:] != row[1:]:
            timeline.append(row)
