"""Gandiva: servers by affinity, time slices when over-subscribed, introspective migration.

Source: Xiao et al., *Gandiva: Introspective cluster scheduling for deep learning*, OSDI 2018.
What is where:

- section 4.1, mechanisms: suspend-resume and time slicing: `Gandiva.decide`;
- section 4.2, reactive mode, getting nodes for a job: `affinity.py`;
- section 4.2, introspective mode, migration: `migration.py`.

The section numbers and the quantum of a minute were checked against published summaries. There
is no source code to compare with; the limit of `fragmented_share` and all ties are our choice.

**Admission** is first come, first served; a job that does not fit is passed over. A
machine's affinity is the GPU demand of the first job it got when it was idle, until it is
idle again. A job goes to (1) the machine of its affinity with most free GPUs, (2) an idle machine,
(3) the machine of another affinity with most free GPUs, if one machine has room (a suspended
job resumes on its former machine if that has room); otherwise (4) to free GPUs
of machines visited in a random order: early feedback comes before locality, and
migration repairs it. Among equals the first machine in the order of visits.

**Time slices.** While jobs wait, slices end together, at multiples of `quantum_s`. Then running
jobs that completed an iteration on their GPUs queue up behind all waiting ones, the one that
has run longest last (among equals the later arrival), and everybody is placed anew in
that order; a job whose GPUs nobody took keeps them.
So GPUs change hands round-robin, and a gang of any size gets its turn.
Between ends of slices waiting jobs only take GPUs that nobody holds.

**Migration.** When a job finished or a slice ended, after the waiting jobs were served: each job
spread over machines moves to fewer machines or a closer level if free GPUs and its own allow it
(worst level first, then order of arrival); then de-fragmentation. A job is moved at
most once per question.

Deviations: the paper's quantum is a minute. Here it is by default the lease of the other
policies; 500 jobs on 2 racks then end with a mean JCT 1.4 % lower, for a fortieth of the
work (`quantum_s=60` is the paper's). The paper slices each server
by itself with jobs tied to it; slices that end together make gangs over several
servers lawful without its agents. Suspension drops the iteration in progress. Packing of two jobs
on one GPU and grow-shrink, which it tries after suspend-resume, have no counterpart: a GPU
has one holder here and jobs keep their demand.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement
from artist.contract import (
    BasePolicy,
    ClusterView,
    Decision,
    JobView,
    Migrate,
    Options,
    Preempt,
    Start,
    Wake,
)
from artist.io.fields import Duration
from artist.policies.gandiva.affinity import Affinity
from artist.policies.gandiva.migration import Consolidation
from artist.policies.shared.contest import Contest
from artist.policies.shared.placers import PlacerName, placer
from artist.policies.shared.ranking import Rank, RankedQueue
from artist.units import Tick, ticks


class GandivaOptions(Options):
    """Options of Gandiva."""

    # The paper's quantum is 60 s (section 4.1); the default is the lease of the other policies.
    quantum_s: Duration = Field(default=3600.0, description="length of a time slice, seconds")
    migrate: bool = Field(default=True, description="migrate running jobs to better places")
    # Our choice: servers of 4 GPUs with 3 free, which we could not find in the paper's text.
    fragmented_share: float = Field(
        default=0.75, gt=0, le=1, description="free share at which a busy machine is emptied"
    )
    placement: Literal["affinity"] | PlacerName = Field(
        default="affinity", description="by affinity (the paper's), or another placer"
    )
    seed: int = Field(default=0, ge=0, description="seed of the order in which jobs are scattered")


class Gandiva(BasePolicy):
    """Gandiva without GPU sharing and grow-shrink."""

    Options = GandivaOptions

    def __init__(self, options: GandivaOptions) -> None:
        self.options = options
        self._quantum = ticks(options.quantum_s)
        self._affinity = Affinity(options.seed)
        self._placer = None if options.placement == "affinity" else placer(options.placement)
        self._queue = RankedQueue()
        # Per running job: since when it has been running, and the iterations done before its GPUs.
        self._since: dict[int, Tick] = {}
        self._done_before: dict[int, int] = {}
        self._slice_end: Tick = -1

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        """Serve the waiting jobs, at the end of a slice from all GPUs; then migrate."""
        for handle in view.finished:
            del self._since[handle], self._done_before[handle]
            self._affinity.forget(handle)
        for job in view.entered:
            self._queue.add(job, (job.entered,))
        slice_ends = view.now == self._slice_end
        decisions = list(self._serve(view, slice_ends)) if self._queue else []
        if self.options.migrate and (view.finished or slice_ends):
            migration = Consolidation(view, decisions, self._affinity)
            decisions += migration.closer()
            decisions += migration.emptier(self.options.fragmented_share)
        for decision in decisions:
            if isinstance(decision, Start | Migrate):
                job = view.waiting.get(decision.handle) or view.running[decision.handle]
                self._done_before[decision.handle] = job.iterations_done(view.now)
            if isinstance(decision, Start):
                self._since[decision.handle] = view.now
        return [*decisions, *self._next_slice_end(view.now, decisions)]

    def _serve(self, view: ClusterView, slice_ends: bool) -> Sequence[Decision]:
        """The waiting jobs in order, and at the end of a slice the running ones after them."""
        contestable = [
            job
            for handle, job in (view.running.items() if slice_ends else ())
            if job.iterations_done(view.now) > self._done_before[handle]
        ]
        contest = Contest(view.free, contestable, self._place)
        waiting = self._queue.walk(lambda gpus: self._room(contest, gpus))
        running = [((view.now, -self._since[job.handle]), job) for job in contestable]
        for _, job in heapq.merge(waiting, sorted(running, key=_by_rank), key=_by_rank):
            before = len(contest.decisions)
            contest.offer(job)
            for decision in contest.decisions[before:]:
                if isinstance(decision, Start | Migrate):
                    self._affinity.placed(job, decision.placement, contest.pool)
        for decision in contest.decisions:
            if isinstance(decision, Start):
                self._queue.remove(decision.handle)
        return contest.decisions

    def _room(self, contest: Contest, gpus: int) -> bool:
        if self._placer is not None:
            return self._placer.possible(contest.pool, gpus)
        return contest.pool.total >= gpus

    def _place(self, job: JobView, free: FreeGpus) -> Placement | None:
        if self._placer is not None:
            return self._placer.place(free, job.job.gpus)
        return self._affinity.place(job, free)

    def _next_slice_end(self, now: Tick, decisions: Sequence[Decision]) -> list[Decision]:
        waiting = bool(self._queue) or any(isinstance(decision, Preempt) for decision in decisions)
        if not waiting or self._slice_end > now:
            return []
        self._slice_end = (now // self._quantum + 1) * self._quantum
        return [Wake(self._slice_end)]


def _by_rank(pair: tuple[Rank, JobView]) -> tuple[Rank, int]:
    rank, job = pair
    return rank, job.handle
