"""Tiresias: discretized two-dimensional attained service, and consolidation by skew.

Source: Gu et al., *Tiresias: A GPU cluster manager for distributed deep learning*, NSDI 2019.
What is where:

- section 3.2, 2D-LAS, priority queues, promotion: `queues.py`; 2D-Gittins: `gittins.py`;
- section 3.3, skew: `shared/skew.py`; placement: `placement.py`.

Checked against the simulator that its authors published: service that reaches a threshold is past
it, two queues are in use, parted at 3250 GPU-seconds, a promotion sets both clocks to zero, and
without an option there is none. The section numbers were checked against published summaries.

**The rule.** A job's attained service is GPUs x time held. Queue i holds jobs with
service from threshold i-1 up to, but not including, threshold i; a job starts in the first
queue and moves down as it is served. Jobs come forward queue by queue; inside a queue those
started earliest first, those never started after them, by arrival (`index=gittins`: the
highest Gittins index first, then the same). A job that does not fit is passed over. A
job whose wait reaches `promote_knob` x the time it has run, both counted from its last
promotion, goes back to the first queue with both set to zero.

A job with skew above `skew_threshold` goes into the fewest machines an empty cluster would
need, and waits for them; any other job takes the first free GPUs wherever they lie.

**Preemption.** At every arrival, finish and lease end the waiting jobs are served from free
GPUs and from those of jobs whose lease has just ended; such a job keeps its GPUs unless jobs
before it in the order took them. Nobody is preempted while free GPUs will do.

Deviations: the paper re-decides periodically and may preempt at any such event; here a running
job gives way only at the end of its lease, as under the other leasing policies, so that
a comparison is not one of lengths of leases. The layer table stands in for the profiler that
measures skew. For jobs that it does not consolidate the paper fixes no order of GPUs.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement
from artist.contract import BasePolicy, ClusterView, Decision, JobView, Start
from artist.errors import ConfigError
from artist.policies.shared.contest import Contest
from artist.policies.shared.options import LeaseOptions
from artist.policies.shared.placers import AnyPlacer, Placer, PlacerName, placer
from artist.policies.shared.ranking import Rank, RankedQueue, behind, gpus_held
from artist.policies.shared.skew import SKEW_THRESHOLD, skew
from artist.policies.tiresias.gittins import GittinsIndex, read_services
from artist.policies.tiresias.placement import FewestMachines
from artist.policies.tiresias.queues import ServiceQueues
from artist.units import Tick, ticks


class TiresiasOptions(LeaseOptions):
    """Options of Tiresias."""

    index: Literal["las", "gittins"] = Field(
        default="las", description="order inside a queue: by start, or by 2D-Gittins index"
    )
    # Two queues parted at this value: the simulator of the authors (`queue_limit`).
    thresholds_gpu_s: tuple[float, ...] = Field(
        default=(3250.0,), description="service at which a job leaves each queue but the last"
    )
    # The authors' simulator runs without promotion unless told otherwise.
    promote_knob: float | None = Field(
        default=None,
        gt=0,
        le=1e6,
        description="PROMOTEKNOB: promote after waiting so many times the run",
    )
    skew_threshold: float = Field(
        default=SKEW_THRESHOLD, ge=0, le=1, description="PACKLIMIT: consolidate jobs above it"
    )
    placement: Literal["skew"] | PlacerName = Field(
        default="skew", description="by skew (the paper's), or one placer for all jobs"
    )
    past_service_gpu_s: tuple[float, ...] = Field(
        default=(), description="for gittins: total service of past jobs, GPU-seconds"
    )
    past_service_file: str | None = Field(
        default=None, description="for gittins: a CSV file with such services"
    )
    past_service_column: str = Field(default="service_gpu_s", description="its column")

    @model_validator(mode="after")
    def _consistent(self) -> TiresiasOptions:
        thresholds = self.thresholds_gpu_s
        if list(thresholds) != sorted(set(thresholds)) or (thresholds and thresholds[0] <= 0):
            raise ValueError(f"thresholds_gpu_s must be positive and rise, got {thresholds}")
        if any(not service > 0 for service in self.past_service_gpu_s):
            raise ValueError("past_service_gpu_s must be positive")
        known = self.past_service_gpu_s or self.past_service_file
        if self.index == "gittins" and not known:
            raise ValueError(
                "index=gittins needs a distribution: past_service_gpu_s or past_service_file"
            )
        return self


class Tiresias(BasePolicy):
    """Tiresias."""

    Options = TiresiasOptions

    def __init__(self, options: TiresiasOptions) -> None:
        self.options = options
        self.lease = ticks(options.lease_s)
        self._ranks = ServiceQueues(options.thresholds_gpu_s, options.promote_knob, _index(options))
        # Skewed jobs apart from the others: a walk can then drop either group of a demand.
        self._waiting = {True: RankedQueue(), False: RankedQueue()}
        chosen = None if options.placement == "skew" else placer(options.placement)
        self._placers: dict[bool, Placer] = {
            True: chosen or FewestMachines(),
            False: chosen or AnyPlacer(),
        }

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        """Serve the waiting jobs in order."""
        for handle in view.finished:
            self._ranks.forget(handle)
        for job in view.entered:
            self._ranks.entered(job, view.now)
            self._waiting[self._skewed(job)].add(job, self._rank(job, view.now))
        for job in self._ranks.promote(view.now):
            queue = self._waiting[self._skewed(job)]
            queue.remove(job.handle)
            queue.add(job, self._rank(job, view.now))
        if not any(self._waiting.values()):
            return ()
        decisions = self._serve(view)
        for decision in decisions:
            if isinstance(decision, Start):
                job = view.waiting[decision.handle]
                self._waiting[self._skewed(job)].remove(decision.handle)
                self._ranks.started(decision.handle, view.now)
        return decisions

    def contests(self, ended: Sequence[JobView], free: FreeGpus, now: Tick) -> bool:
        """Whether somebody who comes before one of these jobs could use what they would give.

        Whoever waits behind them could only take free GPUs, and would have done so before.
        """
        if not any(self._waiting.values()):
            return False
        if self._ranks.promotes(now):
            return True
        return bool(self._contestable(ended, free, now))

    def _contestable(
        self, ended: Sequence[JobView], free: FreeGpus, now: Tick
    ) -> list[tuple[Rank, JobView]]:
        """Those of the jobs whom somebody precedes who could use what they and nobody hold."""
        gpus = free.total + gpus_held(ended)
        firsts = [queue.first(gpus) for queue in self._waiting.values()]
        first = min((found for found in firsts if found is not None), default=None)
        return behind(first, ended, lambda job: self._rank(job, now))

    def _serve(self, view: ClusterView) -> Sequence[Decision]:
        contestable = self._contestable(view.lease_ended, view.free, view.now)
        contested = [job for _, job in contestable]
        contest = Contest(view.free, contested, self._place, spare_first=True)
        full: set[tuple[bool, int]] = set()

        def possible(skewed: bool, gpus: int) -> bool:
            fits = self._placers[skewed].possible(contest.pool, gpus)
            return fits and (skewed, gpus) not in full

        for job in self._ranked(contestable, possible):
            # What is free only shrinks, so that the next job of this kind would fail as well.
            if not contest.offer(job) and job.placement is None:
                full.add((self._skewed(job), job.job.gpus))
        return contest.decisions

    def _ranked(
        self, contestable: list[tuple[Rank, JobView]], possible: Callable[[bool, int], bool]
    ) -> Iterator[JobView]:
        """Waiting and contestable jobs in order."""
        walks = [
            queue.walk(lambda gpus, skewed=skewed: possible(skewed, gpus))  # type: ignore[misc]
            for skewed, queue in self._waiting.items()
        ]
        for _, job in heapq.merge(*walks, sorted(contestable, key=_by_rank), key=_by_rank):
            yield job

    def _place(self, job: JobView, free: FreeGpus) -> Placement | None:
        return self._placers[self._skewed(job)].place(free, job.job.gpus)

    def _skewed(self, job: JobView) -> bool:
        return skew(job.job.model) > self.options.skew_threshold

    def _rank(self, job: JobView, now: Tick) -> Rank:
        return self._ranks.rank(job, now)


def _by_rank(pair: tuple[Rank, JobView]) -> tuple[Rank, int]:
    rank, job = pair
    return rank, job.handle


def _index(options: TiresiasOptions) -> GittinsIndex | None:
    if options.index == "las":
        return None
    services = list(options.past_service_gpu_s)
    if options.past_service_file is not None:
        if services:
            raise ConfigError("give past_service_gpu_s or past_service_file, not both")
        services = read_services(Path(options.past_service_file), options.past_service_column)
    return GittinsIndex(services)
