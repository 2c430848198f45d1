"""Gandiva: machines by affinity, time slices when over-subscribed, introspective migration.

Source: Xiao et al., *Gandiva: Introspective cluster scheduling for deep learning*, OSDI 2018.

**Where things are.**

- Section 4.1, mechanisms: suspend-resume and time slicing: `Gandiva.decide`.
- Section 4.2, reactive mode, getting nodes for a job, and introspective mode, migration:
  `placement.py`.

**Admission.** First come, first served: jobs come forward in the order in which they entered the
queue (they arrived or were suspended), then in order of arrival. A job that does not fit is passed
over. The *affinity* of a machine is the GPU demand of the first job that it got since it was last
idle. A job gets, in this order:

1. the machine on which it lay last, if that has room. A job that lay on several machines has none;
2. the machine of its own affinity with most free GPUs;
3. the smallest idle machine;
4. the machine of another affinity with most free GPUs;
5. if no machine has room, free GPUs of several machines, visited in random order. Early feedback
   comes before locality, and migration repairs it. The order is drawn once for each job that needs
   one at a question.

Among equals the job gets the first machine in visiting order.

**Time slices.**

1. All slices end together, a whole number of `quantum_s` after the slice clock started. It starts
   with the first arrival; in permutations other than 0, a random part of `quantum_s` later
   (`shared/clock.py`). A slice ends only if a job waited during it, not counting jobs that arrive
   at its very end. Otherwise the running jobs go on.
2. At the end of a slice, every running job that completed an iteration on its GPUs comes behind
   all waiting jobs. Among these running jobs, the one that has run longest comes last; of equal
   ones, the one that arrived later. A run begins when the job leaves the queue. A migration does
   not interrupt it.
3. All of them are placed again in this order (`shared/contest.py`). A running job keeps its GPUs
   if no job before it took them. So GPUs change hands round-robin, and a gang of any size gets its
   turn.
4. A machine is idle in this round if all its GPUs are free or, for a job that takes GPUs of the
   pool, in the pool. Its affinity becomes the demand of the first job that takes GPUs of it while
   all of them are in the pool. A job that keeps its GPUs changes no affinity.
5. Between the ends of slices, waiting jobs only get free GPUs.

**Migration.** When a job finished or a slice ended, after the waiting jobs were served:

1. Jobs on several machines come closer. The worst level comes first, then order of arrival. Each
   is packed again into the free GPUs and its own, as the placer `pack` does. It moves if that is a
   better level, or the same level with fewer machines.
2. Machines that are nearly empty are emptied (`Consolidation.emptier`).
3. Where GPUs or hosts differ, the waiting jobs come forward once more: these moves may free GPUs
   that a job accepts.

A job that started, moved or lost its GPUs at this question does not migrate, and no job moves
twice. A job's own GPUs count as free when it migrates, also for affinity.

**Packing** (`packing`, off by default: the Dally paper has none; sections 3.2 and 4.2). Jobs first
have GPUs of their own, and are profiled there. At the end of a slice, if jobs wait:

1. A pair on trial is judged once both jobs completed an iteration together. Taking turns would give
   them a throughput of 1, each job's relative to its own alone. If they have more, they stay
   together. Else the job that came later is suspended, and the pair is not tried again.
2. Waiting jobs that were profiled are tried beside running ones, those whose GPUs compute the
   smallest share of the time first. The running job must have the same number of GPUs, share them
   with no job, and not have failed with this one; of several, it is the one that computes least.
   Both run until the next slice ends.

A pair takes turns with other jobs as one, led by the job that has run longer. If that job loses its
GPUs or moves, both are suspended. Once no job waits, packed jobs move to free GPUs.

**Checked.** The section numbers and the quantum of one minute were checked against published
summaries. There is no published program to compare with. The default of `fragmented_share` and
the rules for ties are our choice.

**Deviations.**

- The paper's quantum is one minute (`quantum_s=60`). Here the default is the lease of the other
  policies, so that a comparison of policies does not compare lengths of slices.
- The paper slices each server by itself, and jobs stay on their servers. Here all slices end
  together, so that gangs over several servers can take turns without the paper's agents.
- A suspended job loses the iteration in progress.
- The paper has grow-shrink, which is missing: jobs keep their demand.
- The paper packs only jobs whose memory fits together. Jobs here do not state it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from functools import partial
from typing import ClassVar

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement
from artist.contract import (
    BasePolicy,
    ClusterView,
    Decision,
    JobView,
    Migrate,
    Preempt,
    Start,
    Wake,
)
from artist.policies.gandiva.options import GandivaOptions
from artist.policies.gandiva.packing import JOBS_PER_GPU, Packing, companions, leading
from artist.policies.gandiva.placement import Affinity, Consolidation
from artist.policies.shared.clock import PeriodClock
from artist.policies.shared.contest import Contest
from artist.policies.shared.packing import widest_level
from artist.policies.shared.placers import placer
from artist.policies.shared.ranking import Rank, RankedQueue, by_rank
from artist.policies.shared.refusals import Refusals, far_apart
from artist.policies.shared.sharing import Sharing
from artist.policies.shared.usable import free_after, usable_by
from artist.rng import FIRST_DRAWS, Draws
from artist.units import Tick, ticks


class Gandiva(BasePolicy):
    """Gandiva without grow-shrink; GPUs are shared with `packing`."""

    Options: ClassVar = GandivaOptions
    obeys_gpu_kinds = True

    def __init__(self, options: GandivaOptions, draws: Draws | None = None) -> None:
        draws = draws or FIRST_DRAWS
        self.options = options
        quantum = ticks(options.quantum_s)
        self._slices = PeriodClock(quantum, draws.phase(quantum))
        self._affinity = Affinity(draws)
        self._placer = None if options.placement == "affinity" else placer(options.placement)
        self._queue = RankedQueue()
        self._consolidates = self._placer is None or self._placer.consolidates
        self._refusals = Refusals(self._queue) if self._consolidates else None
        self._widest = widest_level if self._placer is None else self._placer.widest
        # Per running job: when it started, and its iterations when it got its current GPUs.
        self._since: dict[int, Tick] = {}
        self._done_before: dict[int, int] = {}
        self._slice_end: Tick = -1
        self._packing = Packing() if options.packing else None
        self.jobs_per_gpu = JOBS_PER_GPU if options.packing else 1
        self.reads_hosts = not options.packing

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        """Serve the waiting jobs, then migrate."""
        self._slices.asked(view)
        for handle in view.finished:
            del self._since[handle], self._done_before[handle]
            self._affinity.forget(handle)
            if self._packing is not None:
                self._packing.forget(handle)
        if self._refusals is None and view.free.hosts is not None:
            self._refusals = Refusals(self._queue)
        for job in view.entered:
            rank = (job.entered,)
            self._queue.add(job, rank)
            if self._refusals is not None:
                self._refusals.entered(job.job.gpus, rank, job.handle)
        slice_ends = view.now == self._slice_end
        pairs = self._pack(self._packing, view) if self._packing is not None and slice_ends else []
        decisions, waits = self._serve(view, slice_ends, pairs) if self._queue else ([], [])
        if self._packing is not None:
            decisions += companions(view, decisions, pairs) + pairs
            if not self._queue and (view.finished or slice_ends):
                self._spread(view, decisions)
        if self.options.migrate and (view.finished or slice_ends):
            migration, before = Consolidation(view, decisions, self._affinity), len(decisions)
            decisions += migration.closer()
            decisions += migration.emptier(self.options.fragmented_share)
            if len(decisions) > before and self._queue and view.free.hosts is not None:
                started = self._serve_moved(view, decisions)
                waits = [x for x in waits if getattr(x, "handle", -1) not in started]
        for decision in decisions:
            if isinstance(decision, Start | Migrate):
                job = view.waiting.get(decision.handle) or view.running[decision.handle]
                self._done_before[decision.handle] = job.iterations_done(view.now)
            if isinstance(decision, Start):
                self._since[decision.handle] = view.now
        return [*decisions, *waits, *self._next_slice_end(view.now, decisions)]

    def _serve(
        self, view: ClusterView, slice_ends: bool, pairs: Sequence[Decision]
    ) -> tuple[list[Decision], list[Decision]]:
        """Let waiting jobs come forward; at the end of a slice, running jobs after them.

        Jobs on the same GPUs come forward as one, except those of new `pairs`, which do not.
        Returns the decisions, and why jobs wait although enough GPUs were free for them.
        """
        running: Iterable[JobView] = view.running.values() if slice_ends else ()
        if self._packing is not None and slice_ends:
            hosts = {pair.beside for pair in pairs if isinstance(pair, Start)}
            running = [x for x in leading(view.running, self._since) if x.handle not in hosts]
        contestable = [job for job in running if self._worked(job, view.now) and view.frees(job)]
        sharing = Sharing(view, self.options.most_slowdown)
        contest = Contest(view.free, contestable, partial(self._place, sharing))
        sharing.decisions = contest.decisions
        waiting = self._queue.walk(lambda gpus: self._room(contest, gpus))
        ranked = [((view.now, -self._since[job.handle]), job) for job in contestable]
        order = heapq.merge(waiting, sorted(ranked, key=by_rank), key=by_rank)
        self._offer(contest, order if ranked else waiting)
        waits = sharing.waits()
        if self._refusals is not None:
            refused = self._refusals.refused(contest, view.now)
            widest = self._widest if self._consolidates else None
            reason = partial(far_apart, widest, view, sharing)
            waits += self._refusals.waits(refused, reason, contest.starved)
        return list(contest.decisions), waits

    def _serve_moved(self, view: ClusterView, decisions: list[Decision]) -> set[int]:
        """Append the starts of waiting jobs that moves made room for. Returns their handles."""
        sharing = Sharing(view, self.options.most_slowdown)
        contest = Contest(free_after(view, decisions), (), partial(self._place, sharing))
        sharing.decisions = contest.decisions = decisions
        before = len(decisions)
        self._offer(contest, self._queue.walk(lambda gpus: self._room(contest, gpus)))
        return {x.handle for x in decisions[before:] if isinstance(x, Start)}

    def _offer(self, contest: Contest, order: Iterable[tuple[Rank, JobView]]) -> None:
        """Let jobs come forward; those that start leave the queue."""
        first = len(contest.decisions)
        for rank, job in order:
            before = len(contest.decisions)
            self._affinity.comes_forward()
            contest.offer(rank, job)
            for decision in contest.decisions[before:]:
                if isinstance(decision, Start | Migrate):
                    self._affinity.placed(job, decision.placement, contest.pool)
        for decision in contest.decisions[first:]:
            if isinstance(decision, Start):
                self._queue.remove(decision.handle)

    def _worked(self, job: JobView, now: Tick) -> bool:
        """Whether a running job completed an iteration on its GPUs."""
        return job.iterations_done(now) > self._done_before[job.handle]

    def _pack(self, packing: Packing, view: ClusterView) -> list[Decision]:
        """Undo pairs that do not pay, and try others, which keep their GPUs for this slice."""
        worked = [job.handle for job in view.running.values() if self._worked(job, view.now)]
        packing.profile(view.running, worked)
        decisions: list[Decision] = [*packing.unpacked(view, worked)]
        for start in packing.packed(view):
            decisions.append(start)
            self._queue.remove(start.handle)
        return decisions

    def _spread(self, view: ClusterView, decisions: list[Decision]) -> None:
        """Move packed jobs to GPUs of their own, the later one of a pair first, as no job waits."""
        free, sharing = free_after(view, decisions), Sharing(view, self.options.most_slowdown)
        sharing.decisions = decisions
        named = {getattr(x, "handle", -1) for x in decisions}
        for handle in sorted(view.running, reverse=True):
            job = view.running[handle]
            if not job.beside or named.intersection((handle, *job.beside)):
                continue
            self._affinity.comes_forward()
            placement = self._place(sharing, job, free)
            if placement is not None:
                free.claim(placement)
                self._affinity.placed(job, placement, free)
                decisions.append(Migrate(handle, placement))
                named.add(handle)

    def _room(self, contest: Contest, gpus: int) -> bool:
        """Whether a job could get this many GPUs; if not, note the refusal."""
        if contest.pool.hosts is not None:
            return contest.pool.total >= gpus
        possible = contest.pool.fits_one(self._widest(contest.pool.tree, gpus), gpus)
        if not possible and self._refusals is not None and contest.pool.total >= gpus:
            self._refusals.drops(gpus)
        return possible

    def _place(self, sharing: Sharing, job: JobView, free: FreeGpus) -> Placement | None:
        if self._placer is not None:
            usable = usable_by(free, job.job)
            placement = self._placer.place(usable, job.job.gpus, sharing.busy)
        else:
            placement = self._affinity.place(job, free)
        return sharing.permitted(job.handle, placement)

    def _next_slice_end(self, now: Tick, decisions: Sequence[Decision]) -> list[Decision]:
        """A wake-up at the next end of a slice, if jobs wait or are tried and none is planned."""
        waiting = bool(self._queue) or any(isinstance(decision, Preempt) for decision in decisions)
        trying = self._packing is not None and self._packing.trying
        if not (waiting or trying) or self._slice_end > now:
            return []
        self._slice_end = self._slices.after(now)
        return [Wake(self._slice_end)]
