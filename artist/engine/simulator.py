"""The simulation loop. Only here does time move, and only from here do GPUs change hands.

One instant goes through these stages:

1. drain: handle every event of this tick, in the written order (`events.py`);
2. ask: stop with a question (`next_question`) if there is a reason: a job arrived or finished, a
   waiting job contests a lease that ended, GPUs left or entered service, or a policy asked to be
   woken;
3. answer: check the decisions (`answers.py`), move GPUs, then apply everything else;
4. rate: ask the rate function once about the jobs that changed.

What each of these does to a job is in `transitions.py`.

`run` is the loop over these stages; a driver outside may use them one by one. At a question the
simulator can be copied or pickled. Continuing the copy gives the same rows.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType

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
    LinksNow,
    Policy,
    RateFunction,
    as_if_alone,
    policy_name,
)
from artist.contract.readable_answer import readable
from artist.engine import invariants
from artist.engine.answers import checked
from artist.engine.events import ARRIVAL, FINISH, LEASE_END, OUTSIDE, WAKE, Event, EventQueue
from artist.engine.holdings import Holdings
from artist.engine.job_state import JobState
from artist.engine.livelock import Livelock
from artist.engine.outages import Outages
from artist.engine.rows import Rows
from artist.engine.shared_holdings import SharedHoldings
from artist.engine.transitions import Transitions
from artist.engine.what_if import finishes
from artist.errors import InvariantError, PolicyError, TraceError
from artist.garbage_collector import many_objects
from artist.units import LAST_TICK, SHORTEST_LEASE_S, Tick, counted, ticks
from artist.workload.job import Job

# Wake-ups in the queue. A policy needs only the next one; each takes 150 bytes until it comes.
MAX_WAKES = 1_000_000


class Simulator:
    """One run of a list of jobs on a cluster.

    `jobs` are in order of arrival; a job's position is its handle. `lease` is the length of leases
    in ticks, or None without leases. `visiting_order` breaks ties between units. `events` come from
    outside the trace, and `checkpoints` say when jobs save their state. Up to `jobs_per_gpu` jobs
    may share a GPU. With `check`, every invariant is verified after every event, which is slow.
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
        self.now: Tick = 0
        self._jobs = jobs
        self._rates = rates
        self._check = check
        shared = any(job.is_share for job in jobs)
        holdings = SharedHoldings if shared else Holdings
        self._holdings = holdings(tree, jobs, visiting_order)
        if jobs_per_gpu > 1 and shared:
            raise PolicyError(
                "jobs ask for shares of GPUs, and the policy lets jobs share whole ones "
                "(jobs_per_gpu); leave one of them out"
            )
        self._queue = EventQueue()
        self._transitions = Transitions(self._holdings, self._queue, rates, lease, checkpoints)
        self.rows = self._transitions.rows
        self.rows.timeline.gpu_parts = holdings.gpu_parts
        self._arrived = 0
        self._outages = Outages(events)
        self._jobs_per_gpu = jobs_per_gpu
        self._asking = False
        self._livelock = Livelock()
        self._wakes = 0  # wake-ups in the queue
        self._schedule_arrival()
        self._outages.schedule(self.now, self._queue)

    # -- driving -----------------------------------------------------------------

    def run(self, policy: Policy, on_question: Callable[[Simulator], None] | None = None) -> Rows:
        """Simulate until every job has finished.

        Raises:
            PolicyError: an invalid decision, or jobs wait and nothing will ever happen.
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
            wait = state.last_wait
            reason = f"; it waits as {wait.reason}" if wait is not None and wait.reason else ""
            raise PolicyError(
                f"{name} left {counted(self.jobs_waiting, 'job')} waiting with nothing to wait for "
                f"(the first is job {first.id!r}, {counted(first.gpus, 'GPU')}, "
                f"{self._holdings.free.total} free{reason})"
            )
        return self.rows

    def next_question(self, policy: Policy | None = None) -> ClusterView | None:
        """Advance to the next instant at which a policy must be asked; None at the end.

        A question without an answer is asked again. The end of a lease is a question, unless
        `policy` is given and says that no job contests the lease (`Policy.contests`).
        """
        transitions = self._transitions
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
            # Handling an event may push another one at this tick, such as the next arrival.
            while heap and heap[0][0] == tick:
                self._handle(self._queue.pop())
                if self._check:
                    invariants.check(self._holdings)
            if transitions.lease_ended and not self._asking:
                self._ask_about_leases(policy)
            if transitions.changed and not self._asking:
                transitions.rate(tick)
        return self.view()

    def _ask_about_leases(self, policy: Policy | None) -> None:
        """After leases ended and nothing else happened: ask, or renew the leases."""
        transitions, free = self._transitions, self._holdings.free
        if (
            policy is None
            or transitions.entered
            or policy.contests(transitions.lease_ended, free, self.now)
        ):
            self._asking = True
        else:
            transitions.renew_leases(self.now)

    def view(self) -> ClusterView:
        """The question that is being asked."""
        holdings, rates, transitions = self._holdings, self._rates, self._transitions
        links, on_notice = rates.links, holdings.on_notice
        if links is not NO_SHARED_LINKS:
            gone = [
                handle for handle, state in transitions.changed.items() if state.placement is None
            ]
            links = LinksNow(links, dict.fromkeys(gone))
        return ClusterView(
            self.now,
            holdings.free,
            MappingProxyType(holdings.waiting),
            MappingProxyType(holdings.running),
            transitions.entered,
            transitions.lease_ended,
            transitions.finished,
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
        """`ClusterView.what_if` for the present question."""
        return finishes(self.without_future(), answer, policy, hidden)

    def answer(self, decisions: Sequence[Decision], policy: str = "the driver") -> None:
        """Apply the answer to the question of `next_question`.

        Raises:
            PolicyError: a decision is invalid; the message names the policy. Nothing
                has changed then, and the question may be answered again. After any other
                error the simulator cannot be used any more.
        """
        if not self._asking:
            raise PolicyError(f"answer of {policy} without a question; call next_question() first")
        try:
            self._apply(decisions)
        except PolicyError as cause:
            raise PolicyError(f"invalid decision of {policy}: {cause}") from None
        if self._transitions.lease_ended:
            self._transitions.renew_leases(self.now)
        if self._transitions.changed:
            self._transitions.rate(self.now)
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
        """Whether all jobs wait, only outages can happen, and yet the cluster is whole."""
        holdings = self._holdings
        waiting = bool(holdings.waiting) and not holdings.running and not self._wakes
        arrived = len(self.rows.jobs) + len(holdings.waiting) == len(self._jobs)
        return waiting and arrived and not holdings.withdrawn and not decisions

    def without_future(self) -> Simulator:
        """The same question in a run in which no job arrives any more and nothing fails.

        Its rows start here. It shares everything else with this simulator, so copy it before use.
        """
        twin = copy.copy(self)
        twin._queue = self._queue.without(ARRIVAL, OUTSIDE)
        come = any(kind is ARRIVAL for _, kind, *_ in self._queue)
        twin._jobs = self._jobs[: self._arrived - come]
        twin._arrived = len(twin._jobs)
        twin._outages = Outages(None)
        twin.rows = Rows()
        twin._transitions = self._transitions.elsewhere(twin.rows, twin._queue)
        twin.rows.timeline.gpu_parts = self.rows.timeline.gpu_parts
        twin._livelock = Livelock()
        twin._check = False
        return twin

    def facts(self) -> list[object]:
        """What copies share with this simulator: constants, and answers that never change."""
        return [self.tree, *self._jobs, *getattr(self._rates, "facts", ())]

    def forget_notices(self) -> None:
        """Drop all notices. GPUs that notices keep out stay out for the rest of this run."""
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
        """Let one event happen, unless it is stale: its job has been rescheduled since."""
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
            self._transitions.outage(self._outages.take(), self.now)
            self._asking = True
            self._outages.schedule(self.now, self._queue)
        else:
            state = self._holdings.running.get(handle)
            if state is None or state.epoch != epoch:
                return  # stale: of an earlier rate or stay
            if self.now > LAST_TICK:
                raise self._too_late(state)
            if kind is LEASE_END:
                self._transitions.end_lease(state, self.now)
            elif kind is FINISH:
                self._transitions.finish(state, self.now)
                self._asking = True
            else:
                self._transitions.changed[handle] = state
        self.rows.events += 1

    def _too_late(self, state: JobState) -> TraceError:
        return TraceError(
            f"job {state.job.id!r} would still run after {LAST_TICK} ns (292 years) of simulated "
            "time, where the clock ends; give the jobs less work, more GPUs or a faster network"
        )

    def _arrive(self, handle: int) -> None:
        self._transitions.arrive(self._jobs[handle], handle, self.now)
        self._asking = True
        self._schedule_arrival()

    def _schedule_arrival(self) -> None:
        """Put the next arrival into the queue, which holds one at a time."""
        if self._arrived < len(self._jobs):
            arrival = ticks(self._jobs[self._arrived].arrival_s)
            self._queue.push(arrival, ARRIVAL, self._arrived)
            self._arrived += 1

    # -- decisions ---------------------------------------------------------------

    def _apply(self, decisions: Sequence[Decision]) -> None:
        """Check the decisions, move all their GPUs at once, then do everything else."""
        if not decisions:
            readable(decisions, self._holdings.name)  # refuses None
            self._transitions.heard()
            return
        holdings = self._holdings
        answer = checked(readable(decisions, holdings.name), holdings, self.now, self._jobs_per_gpu)
        if self._wakes + len(answer.wakes) > MAX_WAKES:
            raise PolicyError(
                f"it waits for more than {MAX_WAKES:,} wake-ups at once; ask for the next one only"
            )
        # This is the last step that can refuse the answer. Nothing has changed so far, so the
        # question may be answered again.
        holdings.exchange(answer)
        self._wakes += len(answer.wakes)
        if answer.placed or answer.preempted or answer.holds or answer.batches:
            self._livelock.decided()
        for tick in answer.wakes:
            self._queue.push(tick, WAKE, -1)
        self._transitions.apply(answer, self.now)
