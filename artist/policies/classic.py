"""The classic policies: FIFO, SJF, LAS, SRTF, SRSF.

Sources: SRTF and LAS as in Gu et al., *Tiresias* (NSDI 2019), section 3. SRSF is the "shortest
remaining service first" of that section. FIFO and SJF have no paper.

A classic policy is an order, a rule of preemption and a placer (`shared/placers.py`).

**Order.** The job with the smallest key comes forward first; among equals, the one that arrived
first. The keys are in `shared/ranking.py`.

| option `order` | key | policies |
| --- | --- | --- |
| `arrival` | none: order of arrival | `fifo`, `fifo-backfill` |
| `length` | ideal run time: iterations x compute time | `sjf` |
| `remaining` | ideal time of the iterations that are left | `srtf` |
| `area` | ideal time of the iterations that are left x GPUs | `srsf` |
| `service` | GPUs x time for which the job has held GPUs | `las` |
| `sensitivity` | Dally's `Nw_sens`: ideal time of the iterations done / time with GPUs | |

**Rules.** Simulators mean four different things by FIFO, so the rules are exact.

1. A waiting job that comes forward starts if its placer has a placement.
2. If it has none, the job is passed: later jobs may start. Nothing is reserved for it
   (backfilling without reservation).
3. With `strict=true`, the first job that has no GPUs after its turn, be it a waiting or a preempted
   one, blocks the waiting jobs behind it. Running jobs behind it keep their GPUs. If a job before
   them took some, they move.
4. Option `preemption` says when a running job may lose its GPUs to a job before it in the order:
   `never`; `lease`: when its lease ends; `at-once`: at every question. A job whose GPUs
   no job before it takes keeps them.

The competition is `shared/contest.py`.

**Deviations.** An iteration is never cut, so a lease ends at the end of an iteration. A
preempted job loses the iteration in progress.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement, tier
from artist.contract import BasePolicy, ClusterView, Decision, JobView, Start
from artist.policies.options import ClassicOptions
from artist.policies.shared.contest import Contest, run_contest
from artist.policies.shared.packing import best_level
from artist.policies.shared.placers import placer
from artist.policies.shared.ranking import ORDERS, LastRanked, Rank, RankedQueue, behind, gpus_held
from artist.policies.shared.refusals import Refusals, far_apart
from artist.policies.shared.sharing import Sharing
from artist.policies.shared.usable import usable_by
from artist.units import Tick, ticks


class Classic(BasePolicy):
    """A policy made of an order, a rule of preemption and a placer."""

    Options: ClassVar = ClassicOptions
    reads_hosts = True
    obeys_gpu_kinds = True
    reads_shares = True

    def __init__(self, options: ClassicOptions) -> None:
        self.options = options
        self._rank = ORDERS[options.order]
        self.lease = ticks(options.lease_s) if options.preemption == "lease" else None
        self.head_blocks = options.strict and options.order == "arrival"
        self._placer = placer(options.placement)
        self._queue = RankedQueue()
        self._widest = self._placer.widest if self._placer.consolidates else None
        self._refusals = Refusals(self._queue) if self._widest is not None else None
        # `LastRanked` needs ranks that never rise while a job runs. Attained service rises, and
        # sensitivity may.
        rises = options.order in ("service", "sensitivity")
        never_rises = options.preemption == "at-once" and not rises
        self._last = LastRanked() if never_rises else None

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        """Serve the waiting jobs in the policy's order."""
        if self._last is not None:
            for handle in view.finished:
                self._last.forget(handle)
            for job in view.entered:  # a failure may have taken work from it: its rank rose
                self._last.forget(job.handle)
        if self._refusals is None and view.free.hosts is not None:
            self._refusals = Refusals(self._queue)
        for job in view.entered:
            rank = self._rank(job, view.now)
            self._queue.add(job, rank)
            if self._refusals is not None:
                self._refusals.entered(job.job.gpus, rank, job.handle)
        if not self._queue:
            return ()
        at_once = self.options.preemption == "at-once"
        contestable = [] if at_once else self._contestable(view, view.free)
        if not at_once and not contestable and self._queue.first(view.free.total) is None:
            return ()  # no job may lose GPUs, and every waiting job wants more than are free
        sharing = Sharing(view, self.options.most_slowdown)
        contest = Contest(view.free, (), partial(self._place, sharing))
        sharing.decisions = contest.decisions
        if at_once:
            self._start_without_contest(contest, sharing)
            contestable = self._contestable(view, contest.free) if self._queue else []
        if contestable:
            contest.contend([job for _, job in contestable])
        strict = self.options.strict
        decisions = run_contest(
            contest,
            self._queue,
            contestable,
            # Strict: a job that does not fit must come forward, so that it blocks those behind it.
            lambda gpus: strict or self._possible(contest.pool, gpus),
            strict=strict,
        )
        if self._last is not None:
            for decision in decisions:
                if isinstance(decision, Start):
                    job = view.waiting[decision.handle]
                    self._last.add(job.handle, self._rank(job, view.now))
        waits = sharing.waits() if sharing.refused else []
        if self._refusals is not None and (refused := self._refusals.refused(contest, view.now)):
            reason = partial(far_apart, self._widest, view, sharing)
            waits += self._refusals.waits(refused, reason, contest.starved)
        return [*decisions, *waits] if waits else decisions

    def _start_without_contest(self, contest: Contest, sharing: Sharing) -> None:
        """First start the jobs that the free GPUs serve as well as any GPUs could.

        Stop at the first job that could get a better level from running jobs. The outcome is that
        of a contest. It only costs less: a contest puts the GPUs of nearly every running job into
        the pool, and mostly no job uses them.
        """
        tree, started = contest.free.tree, []
        for _, job in self._queue.walk(lambda gpus: True):
            placement = self._place(sharing, job, contest.free)
            if placement is None or tier(tree, placement) > best_level(tree, job.job.gpus):
                break
            contest.start(job, placement)
            started.append(job.handle)
        for handle in started:
            self._queue.remove(handle)

    def _contestable(self, view: ClusterView, free: FreeGpus) -> list[tuple[Rank, JobView]]:
        """Running jobs that a waiting job comes before, with their ranks.

        Their GPUs may go to that job. A waiting job that could not start even with all these GPUs
        does not count.
        """
        if self._last is None:
            at_once = self.options.preemption == "at-once"
            jobs = list(view.running.values()) if at_once else view.lease_ended
            if not jobs:
                return []
            first = self._queue.first(free.total + gpus_held(jobs))
            ranked = behind(first, jobs, lambda job: self._rank(job, view.now))
        else:
            first = self._queue.first(view.cluster.gpus)
            assert first is not None  # a job waits, and every job fits the cluster
            ranked = self._last.behind(first, view.running, lambda job: self._rank(job, view.now))
        if view.on_notice or view.kept:
            return [(rank, job) for rank, job in ranked if view.frees(job)]
        return ranked

    def contests(self, ended: Sequence[JobView], free: FreeGpus, now: Tick) -> bool:
        """Whether a waiting job could displace one of these jobs.

        It must come before that job, and must fit the free GPUs and those of the ended leases.

        Waiting jobs behind all of them could only get free GPUs. At the last question these did
        not suffice, and no GPU was freed since. What a job would lose on links may have changed
        since, though.
        """
        if not self._queue or self.options.most_slowdown is not None:
            return bool(self._queue)
        first = self._queue.first(free.total + gpus_held(ended))
        if first is None:
            return False
        return any(first < (self._rank(job, now), job.handle) for job in ended)

    def _possible(self, free: FreeGpus, gpus: int) -> bool:
        """Whether a job of this many GPUs may get them."""
        possible = self._placer.possible(free, gpus)
        if not possible and self._refusals is not None and free.total >= gpus:
            self._refusals.drops(gpus)
        return possible

    def _place(self, sharing: Sharing, job: JobView, free: FreeGpus) -> Placement | None:
        usable = usable_by(free, job.job)
        placement = self._placer.place(usable, job.job.gpus, sharing.busy)
        return sharing.permitted(job.handle, placement)
