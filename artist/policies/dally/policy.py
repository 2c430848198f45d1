"""Dally: delay scheduling over network levels, with timers that tune themselves.

Source: Sharma et al., *Dally: A network-placement sensitive cluster scheduler for deep
learning*, IEEE Big Data 2025.

**What is where.**

- Section IV-B1, network-sensitive priority `Nw_sens`: `sensitivity` in `shared/ranking.py`.
- Section IV-B2 and Algorithm 1, on resource offer: `Dally._accept`.
- Section IV-B2, delay timers, and Algorithm 2, get tuned timers: `timers.py`.
- Section V-C, the baselines Dally-manual, -noWait and -fullyConsolidated: option `timers`.

**The rule.**

1. At each question the waiting jobs compete with the jobs whose lease has just ended
   (`shared/contest.py`). The smallest `Nw_sens` comes first; among equals, the job that entered
   the queue first. Values are compared without rounding.
2. A waiting job accepts a placement inside a machine at once. It accepts one inside a rack when
   its machine timer has expired, and one across racks when its rack timer has expired too. Both
   timers start at the same moment: when the job arrives or loses its GPUs.
3. A timer is 0 if the level could never hold the job.
4. A job whose lease ended keeps its GPUs if no job before it took them. It moves if a better
   level has room; the paper names this as the purpose of preemption (section VI-3). With
   `moves_for=shape` it also moves to a better shape inside its level.
5. If another job took its GPUs, its wait counts as 0. So it only accepts a level whose timer
   is 0.
6. A job that gets GPUs inside a machine or a rack has accepted an offer (Algorithm 1, lines 7 and
   15). Its wait is recorded: 0 if it ran until now and moves (docs/decisions/
   0014-dally-tuner-and-tiresias-queues.md).
7. The timers are tuned from the waits recorded before, at every arrival, finish and lease end, and
   when GPUs leave or enter service. They are tuned too when a job's timer expires, as it was tuned
   last, so that the job accepts free GPUs.

**Where the paper is silent.** Inside the accepted level the job gets the unit with the fewest
free GPUs that suffice. It is packed into as few machines as possible (`shared/packing.py`).

**Deviations.** None on purpose. Decision 4 (docs/decisions/0004-dally-rules.md) compares these
rules with those of the original simulator (`validation/original/policies.py`).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, TypeGuard

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.host_resources import FreeHosts
from artist.cluster.placement import Placement, machine_counts
from artist.cluster.tree import ClusterTree
from artist.contract import (
    BasePolicy,
    ClusterView,
    Decision,
    JobView,
    Migrate,
    Preempt,
    Start,
    Wait,
    Wake,
)
from artist.policies.dally.options import DallyOptions
from artist.policies.dally.timers import DelayTimers
from artist.policies.shared.contest import Contest, run_contest
from artist.policies.shared.packing import best_level, pack_in_level
from artist.policies.shared.ranking import (
    Rank,
    RankedQueue,
    behind,
    by_rank,
    gpus_held,
    sensitivity,
)
from artist.policies.shared.ratios import ONE, ZERO
from artist.policies.shared.refusals import Refusals
from artist.policies.shared.room import Room
from artist.policies.shared.sharing import Busy, Sharing, nothing_busy, pack_least_contended
from artist.policies.shared.usable import usable_by
from artist.units import Tick, clock_text, ticks
from artist.workload.job import Job


def spread(tree: ClusterTree, placement: Placement) -> tuple[int, bool]:
    """Number of machines of a placement, and whether their shares differ. Smaller is better."""
    machines = machine_counts(tree, placement)
    return len(machines), len(set(machines.values())) > 1


class Dally(BasePolicy):
    """Dally and its variants."""

    Options: ClassVar = DallyOptions
    reads_hosts = True
    obeys_gpu_kinds = True
    reads_shares = True

    def __init__(self, options: DallyOptions) -> None:
        self.options = options
        self.lease = ticks(options.lease_s)
        self._never_ran = ZERO if options.never_ran == "first" else ONE
        self._timers = DelayTimers(options)
        self._queue = RankedQueue()
        self._refusals = Refusals(self._queue)
        # Per demand: (tick of entering the queue, handle) of its waiting jobs, ascending.
        self._entered: dict[int, list[tuple[Tick, int]]] = {}
        self._now: Tick = 0
        # The free GPUs that the last answer left, and when a waiting job will accept some of them.
        self._free = 0
        self._expiry: Tick | None = None
        self._wake: Tick = 0

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        """Offer the free GPUs and those of ended leases to the jobs, smallest `Nw_sens` first."""
        self._now = view.now
        if self._offers_anew(view):
            self._timers.tune(view.now)
        for job in view.entered:
            rank = *sensitivity(job, view.now, self._never_ran), job.entered
            self._queue.add(job, rank)
            self._refusals.entered(job.job.gpus, rank, job.handle)
            insort(self._entered.setdefault(job.job.demand, []), (job.entered, job.handle))
        if not self._queue and not view.lease_ended:
            return ()
        contestable = self._contestable(view.lease_ended, view.free)
        sharing = Sharing(view, self.options.most_slowdown)
        busy = sharing.busy if self.options.placement == "least-contended" else nothing_busy
        contest = Contest(
            view.free,
            [job for _, job in contestable],
            partial(self._accept, sharing, busy),
            partial(self._improve, busy),
        )
        sharing.decisions = contest.decisions
        decisions = run_contest(
            contest,
            self._queue,
            contestable,
            lambda gpus: self._possible(contest.pool, gpus),
        )
        waits = sharing.waits() if sharing.refused else []
        if refused := self._refusals.refused(contest, view.now):
            reason = partial(self._holding_out, contest, sharing)
            waits += self._refusals.waits(refused, reason, contest.starved)
        accepted = []
        longest: dict[int, Tick] = {}
        lost: list[tuple[Tick, Job]] = []
        for decision in decisions:
            if isinstance(decision, Start):
                job = view.waiting[decision.handle]
                self._left(job)
                accepted.append((decision.placement, view.now - job.entered))
            elif isinstance(decision, Migrate):
                accepted.append((decision.placement, 0))
            elif isinstance(decision, Preempt):
                job = view.running[decision.handle]
                longest[job.job.gpus] = view.now
                lost.append((view.now, job.job))
        # Jobs that waited before this answer have waited longer than jobs that it preempts.
        longest |= {gpus: entered[0][0] for gpus, entered in self._entered.items()}
        self._free = contest.free_total
        if view.free.hosts is None:
            self._expiry = self._next_expiry(self._free, lambda: contest.free, longest)
        else:
            self._expiry = self._next_opening(view.free.hosts, lost)
        wakes = []
        if self._needs_wake(self._expiry):
            self._wake = self._expiry
            wakes.append(Wake(self._wake))
        for placement, waited in accepted:
            self._timers.record(view.cluster, placement, waited)
        return [*decisions, *waits, *wakes]

    def contests(self, ended: Sequence[JobView], free: FreeGpus, now: Tick) -> bool:
        """Whether a job could get GPUs or move, or a waiting job needs a new reason.

        If not, this tunes the timers as the question would have.
        """
        if not self._queue and not self._any_could_move(ended, free.tree):
            return False
        if self._queue and self.options.most_slowdown is not None:
            return True
        if free.hosts is not None:
            return True
        self._now = now
        self._timers.tune(now)
        room = Room(free, ended)
        if self._may_move(ended, room):
            return True
        if any(gpus <= room.total for gpus in self._entered):
            contestable = self._contestable(ended, free)
            last = max(map(by_rank, contestable), default=None)
            for gpus in self._entered:
                # A job behind all jobs whose lease ended could get only free GPUs.
                before = last is not None and self._queue.first_of(gpus) < last
                if self._accepts(room if before else free, gpus):
                    return True
            if self._refusals.has_news(contestable, free.total, now):
                return True
        longest = {gpus: entered[0][0] for gpus, entered in self._entered.items()}
        expiry = self._next_expiry(free.total, lambda: free, longest)
        if self._needs_wake(expiry):
            return True
        self._expiry = expiry
        return False

    def _any_could_move(self, jobs: Sequence[JobView], tree: ClusterTree) -> bool:
        """Whether one of these jobs could move if enough GPUs were free."""
        shapes = self.options.moves_for == "shape"
        return any(
            job.tier > tree.machine and (shapes or best_level(tree, job.job.gpus) < job.tier)
            for job in jobs
        )

    def _contestable(self, ended: Sequence[JobView], free: FreeGpus) -> list[tuple[Rank, JobView]]:
        """Jobs whose lease ended and that may lose their GPUs or move, with their ranks.

        If none of them could move, these are only jobs behind the first waiting job whose demand
        the free GPUs and those of the ended leases meet. Other jobs keep their GPUs without a
        contest.
        """
        first: tuple[Rank, int] | None = ((), -1)  # comes before every job
        if not self._any_could_move(ended, free.tree):
            first = self._queue.first(free.total + gpus_held(ended))
        return behind(first, ended, lambda job: (*sensitivity(job, self._now), self._now))

    def _may_move(self, ended: Sequence[JobView], room: Room) -> bool:
        """Whether one of these jobs may have a better placement in the room."""
        tree = room.tree
        if self.options.moves_for == "shape":
            return self._any_could_move(ended, tree)
        return any(
            job.tier > tree.machine and room.fits_one(job.tier - 1, job.job.gpus) for job in ended
        )

    def tables(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """One row per recorded wait, if the timers are tuned."""
        return self._timers.tables()

    # -- Algorithm 1 ---------------------------------------------------------------

    def _accept(
        self, sharing: Sharing, busy: Busy, job: JobView, free: FreeGpus
    ) -> Placement | None:
        """A placement in the best level with room, if the job has waited long enough for it."""
        free, gpus = usable_by(free, job.job), job.job.gpus
        starvation = 0 if job.placement else self._now - job.entered
        waits = self._timers.opens_after(free.tree, gpus)
        for level, wait in enumerate(waits, start=free.tree.machine):
            if wait is None or starvation < wait:
                return None
            placement = pack_least_contended(free, level, gpus, busy)
            if placement is not None:
                return sharing.permitted(job.handle, placement)
        return None

    def _improve(self, busy: Busy, job: JobView, free: FreeGpus) -> Placement | None:
        """A placement in a better level for a running job, or of a better shape in its own."""
        for level in range(free.tree.machine, job.tier):
            usable = usable_by(free, job.job)
            placement = pack_least_contended(usable, level, job.job.gpus, busy)
            if placement is not None:
                return placement
        return self._reshape(job, free) if self.options.moves_for == "shape" else None

    def _reshape(self, job: JobView, free: FreeGpus) -> Placement | None:
        """A better shape at the job's own level; None if there is none."""
        assert job.placement is not None  # only running jobs improve
        placement = pack_in_level(usable_by(free, job.job), job.tier, job.job.gpus)
        if placement is None:
            return None
        better = spread(free.tree, placement) < spread(free.tree, job.placement)
        return placement if better else None

    def _possible(self, free: FreeGpus, gpus: int) -> bool:
        """Whether the job with this demand that has waited longest would accept free GPUs."""
        if free.total < gpus or free.hosts is not None:
            return free.total >= gpus
        if self._accepts(free, gpus):
            return True
        self._refusals.drops(gpus)
        return False

    def _accepts(self, free: FreeGpus | Room, gpus: int) -> bool:
        """Whether the job with this demand that has waited longest would accept some of these."""
        wait = self._wait_for_room(free, gpus) if free.total >= gpus else None
        return wait is not None and self._now - self._entered[gpus][0][0] >= wait

    def _wait_for_room(self, free: FreeGpus | Room, gpus: int) -> Tick | None:
        """How long a job waits until it accepts the innermost level with room.

        None if it never does, or if no level has room.
        """
        waits = self._timers.opens_after(free.tree, gpus)
        for level, wait in enumerate(waits, start=free.tree.machine):
            if free.fits_one(level, gpus):
                return wait
        return None

    # -- bookkeeping ---------------------------------------------------------------

    def _left(self, job: JobView) -> None:
        """Forget when a job entered the queue, since it has left."""
        demand = job.job.demand
        entered = self._entered[demand]
        del entered[bisect_left(entered, (job.entered, job.handle))]
        if not entered:
            del self._entered[demand]

    def _offers_anew(self, view: ClusterView) -> bool:
        """Whether this question is more than a wake-up that has become void.

        A wake-up is void if its job has started or its timer was tuned again. The timers then stay
        as they were last tuned, and no job accepts anything.
        """
        arrived = any(job.entered == view.now for job in view.entered)
        due = self._expiry is not None and self._expiry <= view.now
        freed = view.free.total != self._free
        return arrived or due or freed or bool(view.finished or view.lease_ended)

    def _next_expiry(
        self, total: int, free: Callable[[], FreeGpus], longest: Mapping[int, Tick]
    ) -> Tick | None:
        """The tick at which the first waiting job accepts free GPUs; None if there is none.

        `longest` says per GPU demand when the job with the longest wait entered the queue. `total`
        is the number of free GPUs; `free` is called only if some demand is not above it.
        """
        first = None
        for gpus, entered in longest.items():
            wait = self._wait_for_room(free(), gpus) if gpus <= total else None
            if wait is None or entered + wait <= self._now:
                continue
            expiry = entered + wait
            if first is None or expiry < first:
                first = expiry
        return first

    def _next_opening(self, hosts: FreeHosts, lost: Sequence[tuple[Tick, Job]]) -> Tick | None:
        """The next tick at which a job accepts another level; None if there is none.

        The jobs wait, or `lost` their GPUs just now. Jobs differ in which machines have the CPU
        cores and memory for them, so each is looked at by itself.
        """
        waiting = [
            (entered, self._queue.job(handle).job)
            for jobs in self._entered.values()
            for entered, handle in jobs
        ]
        opens = (
            entered + wait
            for entered, job in (*waiting, *lost)
            for wait in self._timers.opens_after(hosts.tree_for(job), job.gpus)
            if wait is not None and entered + wait > self._now
        )
        return min(opens, default=None)

    def _needs_wake(self, expiry: Tick | None) -> TypeGuard[Tick]:
        """Whether a wake-up is needed: no other one is due by that tick."""
        return expiry is not None and not self._now < self._wake <= expiry

    # -- why jobs wait ---------------------------------------------------------------

    def _holding_out(self, contest: Contest, sharing: Sharing, job: JobView) -> Wait | None:
        """Why a job waits that did not accept GPUs; None if its timers are not the reason.

        If enough GPUs are still free, the reason names the level at which they are. Otherwise it is
        no longer known where they were, only that they spanned more than all levels that it
        accepts.
        """
        free, gpus = contest.free.fed(job.job), job.job.gpus
        tree = free.tree
        entered = self._now if job.placement else job.entered
        names = [level.name for level in tree.levels[tree.machine :]]
        opens = self._timers.opens_after(tree, gpus)
        shut = [at for at, wait in enumerate(opens) if wait is None or entered + wait > self._now]
        if not shut or job.handle in sharing.refused:
            return None
        where = f"spanned more than one {names[shut[0] - 1]}"
        if gpus <= free.total:
            room = next(at for at in shut if free.fits_one(tree.machine + at, gpus))
            where, shut = f"spanned the {names[room]} level", [room]
        wait = opens[shut[0]]
        if wait is None:
            return Wait(job.handle, f"the closest {gpus} free GPUs {where}", "consolidation")
        until = entered + wait
        words = f"which its delay timers accept from {clock_text(until)} on"
        return Wait(job.handle, f"the closest {gpus} free GPUs {where}, {words}", "timer", until)
