"""The classics: an order, a rule of preemption and a placer.

Waiting jobs come forward in the policy's order and are placed by its placer; among
equals the one that arrived first. Exact rules, since simulators differ fourfold in
what they call FIFO:

========  =========================================  ===================
order     smaller first                              known to
========  =========================================  ===================
arrival   arrival                                    fifo, fifo-backfill
length    ideal run time (iterations x compute)      sjf
remaining ideal time of the iterations not done      srtf
area      remaining ideal time x GPUs                srsf
service   GPUs x time held so far                    las
========  =========================================  ===================

*Strict*: nobody starts who comes after the first job that does not fit, be it one that loses
its GPUs; running jobs behind it keep theirs, or move if somebody before it took them. Otherwise
such a job is skipped (backfilling without reservation). *Preemption*: `never`; at the end of a
`lease`, when a job's GPUs go to whoever comes before it in the order; or `at-once`, when that
may happen at any arrival or finish. A job whose GPUs nobody before it needs keeps them.

Sources: SRTF and LAS as in Tiresias (NSDI 2019), section 3; SRSF is its "shortest remaining
service first".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from pydantic import Field

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement, tier
from artist.contract import BasePolicy, ClusterView, Decision, JobView, Start
from artist.policies.shared.contest import Contest, run_contest
from artist.policies.shared.options import LeaseOptions
from artist.policies.shared.packing import best_level
from artist.policies.shared.placers import PlacerName, placer
from artist.policies.shared.ranking import LastRanked, Rank, RankedQueue, behind, gpus_held
from artist.units import Tick, ticks


class ClassicOptions(LeaseOptions):
    """Options of every classic policy; the registry row presets the first three."""

    order: Literal["arrival", "length", "remaining", "area", "service"] = "arrival"
    preemption: Literal["never", "lease", "at-once"] = "never"
    strict: bool = False
    placement: PlacerName = Field(default="pack", description="where GPUs are taken")


class Classic(BasePolicy):
    """One policy out of an order, a rule of preemption and a placer."""

    Options = ClassicOptions

    def __init__(self, options: ClassicOptions) -> None:
        self.options = options
        self._rank = _RANKS[options.order]
        self.lease = ticks(options.lease_s) if options.preemption == "lease" else None
        self._placer = placer(options.placement)
        self._queue = RankedQueue()
        falls = options.preemption == "at-once" and options.order != "service"
        self._last = LastRanked() if falls else None

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        """Serve the waiting jobs in order."""
        if self._last is not None:
            for handle in view.finished:
                self._last.forget(handle)
        for job in view.entered:
            self._queue.add(job, self._rank(job, view.now))
        if not self._queue:
            return ()
        contest = Contest(view.free, (), self._place)
        if self.options.preemption == "at-once":
            self._start_without_contest(contest)
        contestable = self._contestable(view, contest.spare) if self._queue else []
        contest.contend(job for _, job in contestable)
        strict = self.options.strict
        decisions = run_contest(
            contest,
            self._queue,
            contestable,
            lambda gpus: strict or self._placer.possible(contest.pool, gpus),
            strict=strict,
        )
        if self._last is not None:
            for decision in decisions:
                if isinstance(decision, Start):
                    job = view.waiting[decision.handle]
                    self._last.add(job.handle, self._rank(job, view.now))
        return decisions

    def _start_without_contest(self, contest: Contest) -> None:
        """Start those in front whom GPUs that nobody holds suit as well as any could.

        It spares putting nearly every running job's GPUs into a pool that is not used.
        """
        tree, started = contest.spare.tree, []
        for _, job in self._queue.walk(lambda gpus: True):
            placement = self._place(job, contest.spare)
            if placement is None or tier(tree, placement) > best_level(tree, job.job.gpus):
                break
            contest.start(job, placement)
            started.append(job.handle)
        for handle in started:
            self._queue.remove(handle)

    def _contestable(self, view: ClusterView, free: FreeGpus) -> list[tuple[Rank, JobView]]:
        """The running jobs whose GPUs may go to somebody who comes before them."""
        if self._last is None:
            at_once = self.options.preemption == "at-once"
            jobs = list(view.running.values()) if at_once else view.lease_ended
            first = self._queue.first(free.total + gpus_held(jobs))
            return behind(first, jobs, lambda job: self._rank(job, view.now))
        first = self._queue.first(view.cluster.gpus)
        assert first is not None  # somebody waits, and every job fits the cluster
        return self._last.behind(first, view.running, lambda job: self._rank(job, view.now))

    def contests(self, ended: Sequence[JobView], free: FreeGpus, now: Tick) -> bool:
        """Whether somebody who comes before one of these jobs could use what they would give.

        Whoever waits behind them could only take free GPUs, and would have done so before.
        """
        first = self._queue.first(free.total + gpus_held(ended))
        if first is None:
            return False
        return any(first < (self._rank(job, now), job.handle) for job in ended)

    def _place(self, job: JobView, free: FreeGpus) -> Placement | None:
        return self._placer.place(free, job.job.gpus)


def _by_arrival(view: JobView, now: Tick) -> Rank:
    return ()


def _by_length(view: JobView, now: Tick) -> Rank:
    return (ticks(view.job.ideal_s),)


def _by_remaining(view: JobView, now: Tick) -> Rank:
    return (_remaining(view, now),)


def _by_area(view: JobView, now: Tick) -> Rank:
    return (_remaining(view, now) * view.job.gpus,)


def _remaining(view: JobView, now: Tick) -> Tick:
    """In ticks: three times 0.1 s is as long as once 0.3 s, which floats deny."""
    return ticks((view.job.iterations - view.iterations_done(now)) * view.job.compute_s)


def _by_service(view: JobView, now: Tick) -> Rank:
    return (view.service_gpu_s(now),)


_RANKS: Mapping[str, Callable[[JobView, Tick], Rank]] = {
    "arrival": _by_arrival,
    "length": _by_length,
    "remaining": _by_remaining,
    "area": _by_area,
    "service": _by_service,
}
