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

*Strict*: nobody passes the first job that does not fit. Otherwise such a job is
skipped (backfilling without reservation). *Preemption*: `never`; at the end of a `lease`,
when a job's GPUs go to whoever comes before it in the order; or `at-once`, when that may
happen at any arrival or finish. A job whose GPUs nobody before it needs keeps them.

Sources: SRTF and LAS as in Tiresias (NSDI 2019), section 3; SRSF is its "shortest remaining
service first".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from artist.cluster.placement import Placement
from artist.cluster.state import FreeGpus
from artist.policies.base import BasePolicy, ClusterView, Decision, JobView, Options
from artist.policies.contest import Contest, run_contest
from artist.policies.placers import PlacerName, placer
from artist.policies.ranking import Rank, RankedQueue
from artist.units import Tick, ticks


class ClassicOptions(Options):
    """Options of every classic policy; the registry row presets the first three."""

    order: Literal["arrival", "length", "remaining", "area", "service"] = "arrival"
    preemption: Literal["never", "lease", "at-once"] = "never"
    strict: bool = False
    placement: PlacerName = Field(default="pack", description="where GPUs are taken")
    # One hour: the lease for which Dally's delay timers of 12 and 24 h were tuned.
    lease_s: float = Field(default=3600.0, gt=0, allow_inf_nan=False, description="lease, seconds")


class Classic(BasePolicy):
    """One policy out of an order, a rule of preemption and a placer."""

    Options = ClassicOptions

    def __init__(self, options: ClassicOptions) -> None:
        self.options = options
        self.lease = ticks(options.lease_s) if options.preemption == "lease" else None
        self._placer = placer(options.placement)
        self._queue = RankedQueue()

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        """Serve the waiting jobs in order."""
        for job in view.entered:
            self._queue.add(job, self._rank(job, view.now))
        if not self._queue:
            return ()
        contestable = self._contestable(view)
        contest = Contest(view.free, contestable, self._place)
        strict = self.options.strict
        return run_contest(
            contest,
            self._queue,
            [(self._rank(job, view.now), job) for job in contestable],
            lambda gpus: strict or self._placer.possible(contest.pool, gpus),
            strict=strict,
        )

    def _contestable(self, view: ClusterView) -> Sequence[JobView]:
        if self.options.preemption == "at-once":
            return list(view.running.values())
        return view.lease_ended

    def _place(self, job: JobView, free: FreeGpus) -> Placement | None:
        return self._placer.place(free, job.job.gpus)

    def _rank(self, view: JobView, now: Tick) -> Rank:
        job = view.job
        match self.options.order:
            case "arrival":
                return ()
            case "length":
                return (job.ideal_s,)
            case "remaining":
                return ((job.iterations - view.iterations_done(now)) * job.compute_s,)
            case "area":
                return ((job.iterations - view.iterations_done(now)) * job.compute_s * job.gpus,)
            case "service":
                return (view.service_gpu_s(now),)
