"""Tiresias: discretized two-dimensional attained service, and consolidation by skew.

Source: Gu et al., *Tiresias: A GPU cluster manager for distributed deep learning*, NSDI 2019.

**What is where.**

- Section 3.2, 2D-LAS, priority queues, promotion, 2D-Gittins index: `queues.py`.
- Section 3.3, skew and placement: `placement.py`.

**The rule.**

1. The attained service of a job is its GPUs x the time for which it has held them. Queue i holds
   the jobs with service from threshold i - 1 up to, but not including, threshold i. A job starts
   in the first queue and moves down as it is served.
2. Jobs come forward queue by queue. Inside a queue, the job that started earliest comes first.
   Jobs that never started come after those, by arrival. With `index=gittins`, the highest Gittins
   index comes first; among equals the order is the same.
3. A job that does not fit is passed: later jobs may start.
4. A waiting job below the first queue is promoted when its wait reaches `promote_knob` x its run
   time. Both count from its arrival or last promotion. It goes back to the first queue, and its
   wait, run time and service count from zero. A promotion happens at its own tick, whether or not
   anything else happens then. It takes no GPUs from a job whose lease has not ended.
5. A job whose skew is above `skew_threshold` goes on as few machines as it would need in an empty
   cluster. It waits for them. Any other job takes the first free GPUs, wherever they lie.
6. At every arrival, finish and lease end, the waiting jobs compete with the jobs whose lease has
   just ended (`shared/contest.py`). Such a job keeps its GPUs if no job before it took them. No
   job is preempted while free GPUs suffice.

**Checked** against the simulator that the authors of Tiresias published (SymbioticLab/Tiresias at
959f9b0, schedule `dlas-gpu`). It has three queues, parted at 3250 and 7200 GPU-seconds. Its list
of limits holds a third, 18000, which three queues do not use. Service that equals a threshold is
past it. A promotion goes to the first queue and sets wait, run time and service to zero; the run
time counts seconds, not GPU-seconds. Promotion is off unless the schedule's name gives a knob. The
section numbers were checked against published summaries of the paper.

**The program differs** from the paper or from this rule
(docs/decisions/0014-dally-tuner-and-tiresias-queues.md):

- It decides at demotions and promotions too, and then preempts at once.
- A job moves down by one queue per event. Here its service alone says where it is.
- The wait before a job first runs, or first runs after a promotion, does not count.
- Inside a queue, running jobs come before waiting ones, each in the order in which they joined.
- The Gittins index of its schedule `dlas-gpu-gittins` has a quantum of 3250 GPU-seconds in every
  queue. Here the quantum is the upper threshold of the queue.

**Deviations.**

- The paper decides periodically and may preempt at any such event. Here a running job may lose
  its GPUs only when its lease ends, as under the other policies with leases. So a comparison of
  policies does not compare lengths of leases.
- The layer table of a model replaces the profiler that measures skew.
- The paper does not say which GPUs an unskewed job gets. Here it gets the first ones in visiting
  order.

The authors of Pollux ran another reading: `tiresias-rounds` (`elastic/queues.py`).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement
from artist.contract import BasePolicy, ClusterView, Decision, JobView, Preempt, Start, Wait, Wake
from artist.errors import ConfigError
from artist.policies.shared.contest import Contest
from artist.policies.shared.placers import FirstFreePlacer, Placer, placer
from artist.policies.shared.ranking import Rank, RankedQueue, behind, by_rank, gpus_held
from artist.policies.shared.refusals import TOO_FAR_APART, Refusals, far_apart
from artist.policies.shared.room import Room
from artist.policies.shared.sharing import Sharing
from artist.policies.shared.usable import usable_by
from artist.policies.tiresias.options import TiresiasOptions
from artist.policies.tiresias.placement import FewestMachines, skew
from artist.policies.tiresias.queues import GittinsIndex, ServiceQueues, read_services
from artist.units import Tick, ticks


class Tiresias(BasePolicy):
    """Tiresias with leases."""

    Options: ClassVar = TiresiasOptions
    reads_hosts = True
    obeys_gpu_kinds = True
    reads_shares = True

    def __init__(self, options: TiresiasOptions) -> None:
        self.options = options
        self.lease = ticks(options.lease_s)
        self._ranks = ServiceQueues(options.thresholds_gpu_s, options.promote_knob, _index(options))
        # By whether the jobs are skewed. Skewed jobs need other GPUs than unskewed jobs of the same
        # size. With a queue for each, a walk can drop one kind and go on with the other.
        self._waiting = {True: RankedQueue(), False: RankedQueue()}
        self._refusals = {skewed: Refusals(queue) for skewed, queue in self._waiting.items()}
        # Whether machines may lack cores or memory in this run.
        self._starves = False
        self._wake: Tick = 0
        # Jobs that the last answer was to preempt. A gate may have let them keep their GPUs.
        self._preempted: list[int] = []
        chosen = None if options.placement == "skew" else placer(options.placement)
        self._placers: dict[bool, Placer] = {
            True: chosen or FewestMachines(),
            False: chosen or FirstFreePlacer(),
        }

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        """Serve the waiting jobs in rank order."""
        for handle in self._preempted:
            if handle not in view.waiting:
                self._ranks.stays(handle)
        self._preempted.clear()
        for handle in view.finished:
            self._ranks.forget(handle)
        self._starves = view.free.hosts is not None
        for job in view.entered:
            self._ranks.entered(job, view.now)
            self._add(job, view.now)
        for job in self._ranks.promote(view.now):
            self._waiting[self._skewed(job)].remove(job.handle)
            self._add(job, view.now)
        if not any(self._waiting.values()):
            return ()
        sharing = Sharing(view, self.options.most_slowdown)
        contest = self._serve(view, sharing)
        decisions = contest.decisions
        for decision in decisions:
            if isinstance(decision, Start):
                job = view.waiting[decision.handle]
                self._waiting[self._skewed(job)].remove(decision.handle)
                self._ranks.started(decision.handle, view.now)
            elif isinstance(decision, Preempt):
                # Its wait begins now, although the next question is the first to name it.
                self._ranks.entered(view.running[decision.handle], view.now)
                self._preempted.append(decision.handle)
        waits = self._waits(view, contest, sharing)
        return [*decisions, *waits, *self._next_wake(view.now)]

    def contests(self, ended: Sequence[JobView], free: FreeGpus, now: Tick) -> bool:
        """Whether a waiting job could displace one of these jobs, or a question would name one.

        Waiting jobs behind all of them could only get free GPUs. At the last question these did
        not suffice, and no GPU was freed since. A promotion that is due now is a wake-up, so the
        engine asks anyway. What a job would lose on links may have changed, though.
        """
        if self.options.most_slowdown is not None:
            return any(self._waiting.values())
        contestable = self._contestable(ended, free, now) if any(self._waiting.values()) else []
        if not contestable:
            return False
        room, last = Room(free, ended), by_rank(max(contestable, key=by_rank))
        for skewed, queue in self._waiting.items():
            rule = self._placers[skewed]
            for gpus in queue.demands:
                before = gpus <= room.total and queue.first_of(gpus) < last
                if before and rule.may_gain(room, gpus):
                    return True
            refusals = self._refusals[skewed]
            if rule.consolidates and refusals.has_news(contestable, free.total, now):
                return True
        return False

    def _next_wake(self, now: Tick) -> list[Wake]:
        """A wake-up for the next promotion; none if there is none, or one is due before it."""
        due = self._ranks.next_promotion(now)
        if due is None or now < self._wake <= due:
            return []
        self._wake = due
        return [Wake(due)]

    def _contestable(
        self, ended: Sequence[JobView], free: FreeGpus, now: Tick
    ) -> list[tuple[Rank, JobView]]:
        """Jobs that a waiting job before them could displace, with their ranks.

        That waiting job must be able to start on the free GPUs and those of the ended leases.
        """
        gpus = free.total + gpus_held(ended)
        firsts = [queue.first(gpus) for queue in self._waiting.values()]
        first = min((key for key in firsts if key is not None), default=None)
        return behind(first, ended, lambda job: self._rank(job, now))

    def _add(self, job: JobView, now: Tick) -> None:
        """A job enters the queue of its kind."""
        skewed, rank = self._skewed(job), self._rank(job, now)
        self._waiting[skewed].add(job, rank)
        if self._placers[skewed].consolidates or self._starves:
            self._refusals[skewed].entered(job.job.gpus, rank, job.handle)

    def _waits(self, view: ClusterView, contest: Contest, sharing: Sharing) -> list[Decision]:
        """Why jobs wait although enough GPUs were free for them."""
        waits = sharing.waits()
        for skewed, rule in self._placers.items():
            if rule.consolidates or self._starves:
                refusals = self._refusals[skewed]
                refused = [
                    job
                    for job in refusals.refused(contest, view.now)
                    if self._skewed(job) == skewed
                ]
                reason = partial(self._far_apart, view, sharing, skewed)
                waits += refusals.waits(refused, reason, contest.starved)
        return waits

    def _far_apart(
        self, view: ClusterView, sharing: Sharing, skewed: bool, job: JobView
    ) -> Wait | None:
        """Why a job waits that the placer of skewed jobs, or of the others, refused."""
        rule = self._placers[skewed]
        wait = far_apart(rule.widest if rule.consolidates else None, view, sharing, job)
        if wait is None or not skewed or self.options.placement != "skew":
            return wait
        words = f"{TOO_FAR_APART} as few machines as in an empty cluster"
        return Wait(job.handle, words, "consolidation")

    def _serve(self, view: ClusterView, sharing: Sharing) -> Contest:
        """Hold a contest between waiting jobs and jobs whose lease has ended."""
        contestable = self._contestable(view.lease_ended, view.free, view.now)
        contested = [job for _, job in contestable]
        contest = Contest(view.free, contested, partial(self._place, sharing), free_first=True)
        sharing.decisions = contest.decisions
        # (Skewed, GPUs) of waiting jobs that got no placement in this round.
        full: set[tuple[bool, int]] = set()

        def possible(skewed: bool, gpus: int) -> bool:
            rule = self._placers[skewed]
            if rule.possible(contest.pool, gpus) and (skewed, gpus) not in full:
                return True
            if rule.consolidates and contest.pool.total >= gpus:
                self._refusals[skewed].drops(gpus)
            return False

        for rank, job in self._ranked(contestable, possible):
            served = contest.offer(rank, job)
            # The pool only shrinks during a round. So the next such job would fail as well, unless
            # this one waits because of what it would lose on links, or for whole machines.
            alike = self.options.most_slowdown is None and job.job.tensor == 1
            alike = alike and view.free.hosts is None
            if not served and job.placement is None and alike:
                full.add((self._skewed(job), job.job.demand))
        return contest

    def _ranked(
        self, contestable: list[tuple[Rank, JobView]], possible: Callable[[bool, int], bool]
    ) -> Iterator[tuple[Rank, JobView]]:
        """Waiting and contestable jobs with their ranks, in rank order."""
        # `skewed=skewed` binds the value of this turn of the loop, not the last one.
        walks = [
            queue.walk(lambda gpus, skewed=skewed: possible(skewed, gpus))  # type: ignore[misc]
            for skewed, queue in self._waiting.items()
        ]
        yield from heapq.merge(*walks, sorted(contestable, key=by_rank), key=by_rank)

    def _place(self, sharing: Sharing, job: JobView, free: FreeGpus) -> Placement | None:
        rule = self._placers[self._skewed(job)]
        usable = usable_by(free, job.job)
        return sharing.permitted(job.handle, rule.place(usable, job.job.gpus, sharing.busy))

    def _skewed(self, job: JobView) -> bool:
        return skew(job.job.model) > self.options.skew_threshold

    def _rank(self, job: JobView, now: Tick) -> Rank:
        return self._ranks.rank(job, now)


def _index(options: TiresiasOptions) -> GittinsIndex | None:
    if options.index == "las":
        return None
    services = list(options.past_service_gpu_s)
    if options.past_service_file is not None:
        if services:
            raise ConfigError("give past_service_gpu_s or past_service_file, not both")
        services = read_services(Path(options.past_service_file), options.past_service_column)
    return GittinsIndex(services)
