"""When slurmctld runs its schedulers, and what it notes between them.

Two schedulers (`schedulers.py`) test waiting jobs in the same order: PriorityTier, priority,
number.

1. The **main scheduler** starts jobs in order. A job that does not fit closes its partition and the
   partition's machines for the rest of the pass. It runs soon after a job arrives or ends, but not
   before `batch_sched_delay` has passed since its last pass, and tests `default_queue_depth` jobs.
   Every `sched_interval` it tests all jobs.
2. **Backfill** (`backfill.py`) runs every `bf_interval`.

slurmctld checks about once a second whether its main scheduler is due. A trace does not say where
in these periods a job arrived. So clocks start half a second after the first arrival, since Slurm's
logs cut times to whole seconds; each `permutation` moves them.

`SlurmSettings.not_modelled` names settings that are refused unless `policy.not_modelled=ignore`.
Memory, licenses, features, het jobs, nodes that a job names, and CPUs that a trace leaves out are
not modelled either. Traces do not have them, so there is nothing to refuse.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from artist.cluster.cluster_file import Cluster
from artist.contract import BasePolicy, ClusterView, Decision, JobView, Wait, Wake
from artist.errors import ConfigError
from artist.policies.shared.clock import PeriodClock
from artist.policies.shared.refusals import too_little
from artist.policies.shared.usable import of_other_kinds
from artist.policies.slurm.limits import Limits
from artist.policies.slurm.machines import Machines
from artist.policies.slurm.options import SlurmOptions
from artist.policies.slurm.passes import SchedulingPass
from artist.policies.slurm.preemption import REQUEUE_DELAY_S, TIMEOUT_CHECK_S
from artist.policies.slurm.priority import Priorities, Queue, preemptors_first
from artist.policies.slurm.request import Request, RequestReader, limit_s
from artist.policies.slurm.reservations import Reservations
from artist.policies.slurm.running import Running, RunningJob
from artist.policies.slurm.schedulers import GRACE, RESOURCES, Schedulers
from artist.policies.slurm.selection import Selection
from artist.policies.slurm.settings import settings_of
from artist.rng import Draws
from artist.slurm.facts import SlurmFacts
from artist.units import TICKS_PER_S, Tick
from artist.workload.job import Job

_MOST_NAMED = 5


class Slurm(BasePolicy):
    """Slurm 22.05 as the section `slurm` of the cluster file configures it."""

    Options: ClassVar = SlurmOptions
    obeys_gpu_kinds = True

    def __init__(self, options: SlurmOptions, draws: Draws, cluster: Cluster | None = None) -> None:
        self.options = options
        facts = options.facts or (cluster.file.slurm if cluster is not None else None)
        self._facts = facts or SlurmFacts()
        self._names = None if cluster is None else cluster.names["machine"]
        self.settings = settings_of(self._facts)
        missing = list(self.settings.not_modelled)
        if self._facts.reservations and options.epoch_s is None:
            missing.append("reservations, since policy.epoch_s does not say when the trace begins")
        if missing and options.not_modelled == "refuse":
            raise _not_modelled(missing)
        numbers = self.settings.numbers
        calc_period = self.settings.calc_period_s * TICKS_PER_S
        self._clocks = {
            name: PeriodClock(period, draws.phase(period) or first)
            for name, period, first in (
                ("tick", TICKS_PER_S, TICKS_PER_S // 2),
                ("full", max(1, numbers["sched_interval"]) * TICKS_PER_S, TICKS_PER_S // 2),
                ("backfill", numbers["bf_interval"] * TICKS_PER_S, TICKS_PER_S // 2),
                ("priority", calc_period, round(options.calc_phase_s * TICKS_PER_S) % calc_period),
                ("timeout", TIMEOUT_CHECK_S * TICKS_PER_S, TICKS_PER_S // 2),
            )
        }
        self._queue = Queue()
        self._requests: dict[int, Request] = {}
        # How many unfinished jobs have each number.
        self._unfinished: dict[int, int] = {}
        self._main_due: Tick | None = None
        # Periodic passes that may start a job. Without an event since the last one, a pass starts
        # none: expected ends of running jobs and reservations stay the same.
        self._worthwhile = {"full", "backfill"}
        self._in_service = self._gpus_held = 0
        # When jobs that are not eligible yet will be; and the last reason told for each wait.
        self._asleep: dict[int, int] = {}
        self._told: dict[int, str] = {}
        self._last_main: Tick = -(10**18)
        self._wake: Tick = -1
        self._begun = False

    def killed_at_limit(self, job: Job) -> Job:
        """The job, cut where Slurm would kill it at its time limit.

        The cut is exact if communication does not lengthen its iterations.
        """
        limit_s = self._kill_s(job)
        if limit_s is None or job.ideal_s <= limit_s:
            return job
        iterations = max(1, int(limit_s // job.compute_s))
        return replace(job, iterations=iterations, compute_s=min(job.compute_s, limit_s))

    def _kill_s(self, job: Job) -> float | None:
        """How long Slurm lets a job run; None if forever.

        The job's own limit counts, at most the largest of its partitions' limits. A job without a
        limit has that of its first partition.
        """
        partitions = self._facts.gpu_partitions
        named = str(job.hints.get("hint_partition") or self._facts.default_partition).split(",")
        most_s = [partitions[x].max_time_s for x in named if x in partitions] or [None]
        if not self.options.kill or self.settings.over_limit_s is None:
            return None
        if job.hints.get("hint_time_limit_s") in (None, ""):
            if most_s[0] is None:
                return None
            most_s = most_s[:1]
        return max(limit_s(job, x) for x in most_s) + self.settings.over_limit_s

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        """Note what happened, and run the schedulers that are due."""
        if not self._begun:
            self._begin(view)
        for clock in self._clocks.values():
            clock.asked(view)
        self._note(view)
        decisions = self._passes(view)
        return [*decisions, *self._next_wake(view.now)]

    def _begin(self, view: ClusterView) -> None:
        """Build what depends on the cluster, which is known from the first question on."""
        self._begun = True
        self._machines = machines = Machines(view.cluster, self._names, self._facts)
        self._running = Running(machines)
        self._selection = Selection(machines, topology=self.settings.topology)
        qos = {qos.name: qos for qos in self._facts.qos}
        kept = () if self.options.epoch_s is None else self._facts.reservations
        self._reservations = Reservations(kept, machines)
        self._next_end_s = self._reservations.next_end_s(self._seconds(view.now))
        self._priorities = Priorities(self.settings, machines, self._facts)
        self._limits = Limits(
            self._facts,
            machines,
            self._running,
            self._priorities.billed,
            enforced=self.settings.limits,
        )
        self._schedulers = Schedulers(
            self.settings,
            self._requests,
            selection=self._selection,
            limits=self._limits,
            reservations=self._reservations,
        )
        ignores = self.options.not_modelled == "ignore"
        self._reader = RequestReader(machines, qos, ignores=ignores)
        self._priorities.fair_share.rank(self._seconds(view.now))
        self._calculated = view.now

    # -- what happened ----------------------------------------------------------------

    def _note(self, view: ClusterView) -> None:
        """Note the jobs that arrived and ended, and schedule a main pass because of them."""
        now_s = self._seconds(view.now)
        if self._priorities.change:
            self._calculate_until(view.now)
        for handle in view.finished:
            if handle in self._running.of:  # else it was cancelled
                self._left(self._running.leave(handle), now_s)
            self._unfinished[self._requests[handle].number[0]] -= 1
        for job in view.entered:
            self._entered(job, now_s)
        in_service = view.free.total + self._gpus_held
        if view.entered or view.finished or in_service != self._in_service:
            self._worthwhile = {"full", "backfill"}
        self._in_service = in_service
        if view.entered or view.finished:
            self._run_main_soon(view.now)

    def _run_main_soon(self, now: Tick) -> None:
        """Let the main scheduler run at its next tick, after batch_sched_delay."""
        if self._main_due is None:
            delay = self.settings.numbers["batch_sched_delay"] * TICKS_PER_S
            earliest = max(now, self._last_main + delay - TICKS_PER_S)
            self._main_due = self._clocks["tick"].after(earliest)

    def _entered(self, job: JobView, now_s: int) -> None:
        """Queue a job that arrived or lost its GPUs."""
        request = self._requests.get(job.handle)
        if request is None:
            request = self._requests[job.handle] = self._reader.request(job)
            self._limits.check_alone(request)
            request.wait_until(now_s)
            self._unfinished[request.number[0]] = self._unfinished.get(request.number[0], 0) + 1
        elif job.handle in self._running.of:  # GPUs left service
            self._left(self._running.leave(job.handle), now_s)
            self._requeue(request, now_s)
        for one in request.everywhere:
            self._priorities.set(one, now_s)
        self._queue.add(request)

    def _requeue(self, request: Request, now_s: int) -> None:
        self._asleep[request.handle] = now_s + REQUEUE_DELAY_S
        request.wait_until(now_s + REQUEUE_DELAY_S)

    def _left(self, job: RunningJob, now_s: int) -> None:
        """A job gave its GPUs back: it finished, or lost them."""
        request = self._requests[job.handle]
        self._schedulers.graces.left(job.handle)
        self._gpus_held -= request.job.gpus
        self._use(job, request, now_s)

    def _use(self, job: RunningJob, request: Request, now_s: int) -> None:
        billed = self._priorities.billed(request)
        self._priorities.fair_share.use(request.association, billed, job.start_s, now_s)

    def _calculate_until(self, now: Tick) -> None:
        """Do what the decay thread did at every PriorityCalcPeriod until now."""
        shares, clock = self._priorities.fair_share, self._clocks["priority"]
        strike = clock.after(self._calculated)
        if strike > now:
            return
        while strike <= now:
            strike_s = self._seconds(strike)
            shares.decay(strike_s)
            for handle, job in self._running.of.items():
                self._use(job, self._requests[handle], strike_s)
            shares.applied(strike_s)
            self._calculated, strike = strike, clock.after(strike)
        now_s = self._seconds(self._calculated)
        shares.rank(now_s)
        self._queue.set_priorities(self._priorities, now_s)
        self._worthwhile = {"full", "backfill"}

    # -- passes -----------------------------------------------------------------------

    def _passes(self, view: ClusterView) -> list[Decision]:
        """Run the schedulers that are due, and end the jobs whose grace is over."""
        now, queue = view.now, self._queue
        if self._wakes_up(self._seconds(now)):
            self._worthwhile = {"full", "backfill"}
        due = {x for x in self._worthwhile if now == self._clocks[x].last(now)}
        full, backfill = "full" in due, self.settings.backfill and "backfill" in due
        main = full or (self._main_due is not None and self._main_due <= now)
        self._worthwhile -= due
        if main:
            self._main_due, self._last_main = None, now
        over = self._past_grace(now)
        if not over and (not queue or not (main or backfill)):
            return []
        schedulers = self._schedulers
        graces, preemption = schedulers.graces, schedulers.preemption
        schedulers.cut_short = preemption.spared = False
        running = self._running
        state = SchedulingPass(view, self._machines, running, self._seconds(now))
        ready = [request for request in queue.ranked if self._is_ready(request, state.now_s)]
        for handle in over:
            state.preempt(running.of[handle], schedulers.loss(handle, graces.of[handle].preemptor))
        if over:
            self._run_main_soon(now)
        ordered = preemptors_first(ready, preemption)
        if main:
            schedulers.main_pass(state, ordered, full=full)
        if backfill:
            schedulers.backfill_pass(state, ordered)
        for job in state.preempted:
            if not state.victims[job.handle].for_good:
                self._requeue(self._requests[job.handle], state.now_s)
            self._left(job, state.now_s)
        for handle, request in state.started.items():
            graces.started(handle)
            self._gpus_held += queue.take(handle).job.gpus
            self._requests[handle] = request
        if state.started or schedulers.cut_short or preemption.spared or graces.of:
            self._worthwhile = {"full", "backfill"}
        return [*state.decisions(), *self._tell(state)]

    def _past_grace(self, now: Tick) -> list[int]:
        """The jobs whose grace is over, at the times when slurmctld checks that."""
        graces = self._schedulers.graces
        if not graces.of or now != self._clocks["timeout"].last(now):
            return []
        return graces.over(self._seconds(now))

    def _tell(self, state: SchedulingPass) -> list[Decision]:
        """Tell why jobs wait although enough GPUs are free, whenever the reason changes."""
        free, waits = sum(state.free.gpus), list[Decision]()
        for handle in state.started:
            self._told.pop(handle, None)
        for handle, reason in state.reasons.items():
            if handle in state.started or self._told.get(handle) == reason:
                continue
            job = self._requests[handle].job
            if reason == GRACE or job.gpus <= free:
                self._told[handle] = reason
                lacks = of_other_kinds(state.free_by_leaf, job) if reason == RESOURCES else None
                told = Wait(handle, reason) if lacks is None else too_little(handle, free, lacks)
                waits.append(told)
        return waits

    def _wakes_up(self, now_s: int) -> bool:
        """Whether a job has become eligible or a reservation has ended since the last call."""
        awake = [handle for handle, at_s in self._asleep.items() if at_s <= now_s]
        for handle in awake:
            del self._asleep[handle]
        ended, self._next_end_s = self._next_end_s, self._reservations.next_end_s(now_s)
        return bool(awake) or ended != self._next_end_s

    def _is_ready(self, request: Request, now_s: int) -> bool:
        """Whether a job may start: it is eligible, and its dependencies hold."""
        if request.eligible_s > now_s:
            return False
        return not request.after or not any(
            self._unfinished.get(number) and (kind != "after" or not self._has_started(number))
            for kind, number in request.after
        )

    def _has_started(self, number: int) -> bool:
        return any(self._requests[handle].number[0] == number for handle in self._running.of)

    # -- time ---------------------------------------------------------------------------

    def _seconds(self, now: Tick) -> int:
        return now // TICKS_PER_S + (self.options.epoch_s or 0)

    def _next_wake(self, now: Tick) -> list[Decision]:
        """A wake-up for the next pass, if jobs wait."""
        clocks = set[str]()
        if self._queue:
            clocks = {*self._worthwhile, *(["priority"] if self._priorities.change else [])}
        if not self.settings.backfill:
            clocks -= {"backfill"}
        if self._schedulers.graces.of:
            clocks.add("timeout")
        if not clocks and not self._queue:
            return []
        due = [self._clocks[name].after(now) for name in clocks]
        if self._main_due is not None:
            due.append(self._main_due)
        due += self._sleeping()
        first = min(due, default=-1)
        if now < self._wake <= first or not due:
            return []
        self._wake = first
        return [Wake(first)]

    def _sleeping(self) -> list[Tick]:
        """When jobs become eligible and the next reservation ends."""
        ends = [] if self._next_end_s is None else [self._next_end_s]
        zero_s = self.options.epoch_s or 0
        return [(at_s - zero_s) * TICKS_PER_S for at_s in (*self._asleep.values(), *ends)]


def _not_modelled(what: Sequence[str]) -> ConfigError:
    more = f" and {len(what) - _MOST_NAMED} more" if len(what) > _MOST_NAMED else ""
    return ConfigError(
        f"policy slurm does not model {'; '.join(what[:_MOST_NAMED])}{more}; remove that from the "
        "cluster file, or set policy.not_modelled=ignore"
    )
