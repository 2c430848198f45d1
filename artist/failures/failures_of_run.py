"""The failures and checkpoints of one run, for the engine and for the results."""

from __future__ import annotations

from dataclasses import dataclass

from artist.cluster.placement import Placement
from artist.cluster.tree import ClusterTree
from artist.contract import NO_CHECKPOINT, Checkpoint, Policy, RateFunction
from artist.failures.checkpoints import (
    BEST,
    NO_INTERVAL,
    CheckpointOptions,
    daly_interval_s,
    young_interval_s,
)
from artist.failures.events import FailureEvents
from artist.failures.failing_units import FailingUnits
from artist.failures.model_file import NONE, load_failures
from artist.failures.notice_gate import NoticeGate
from artist.failures.slowdowns import RateInIsolation, SlowedRates, SlowPeriods
from artist.units import LAST_TICK, TICKS_PER_S, ticks
from artist.workload.job import Job


@dataclass(frozen=True)
class FailuresOfRun:
    """What fails in a run, and when its jobs write checkpoints."""

    units: FailingUnits | None
    """None if nothing fails."""
    checkpoint: CheckpointOptions | None
    """The options of jobs that state none themselves."""

    def events(self, seed: int) -> FailureEvents | None:
        """The source of the run's failures; None if nothing fails."""
        return None if self.units is None else FailureEvents(self.units, seed)

    @property
    def slows(self) -> bool:
        """Whether some GPUs compute more slowly for a while."""
        return self.units is not None and bool(self.units.slow)

    def rates(self, inside: RateFunction, isolated: RateInIsolation) -> RateFunction:
        """The rate function of the run, in which slow machines slow the jobs on them."""
        return SlowedRates(inside, isolated, self.slowdowns()) if self.slows else inside

    def slowdowns(self) -> SlowPeriods:
        """Which leaves are slow, and when."""
        return SlowPeriods(() if self.units is None else self.units.slow)

    def respecting_notices(self, policy: Policy) -> Policy:
        """The policy, inside a gate against placements on units on notice if there are any."""
        announced = self.units is not None and any(one.notice_s for one in self.units.planned)
        return NoticeGate(policy) if announced else policy

    def hazard(self, placement: Placement) -> float:
        """Failures per second that hit a job on these GPUs."""
        return 0.0 if self.units is None else self.units.hazard(placement)

    def checkpoints(self, job: Job, placement: Placement) -> Checkpoint:
        """When a job on these GPUs writes checkpoints (`contract.CheckpointRule`)."""
        options = self.checkpoint
        interval_s = options.interval_s if options is not None else None
        cost_s = (options.cost_s if options is not None else None) or 0.0
        if job.checkpoint_interval_s is not None:
            interval_s = job.checkpoint_interval_s
        if job.checkpoint_cost_s is not None:
            cost_s = job.checkpoint_cost_s
        if interval_s is None or interval_s == NO_INTERVAL:
            return NO_CHECKPOINT
        if isinstance(interval_s, str):
            hazard = self.hazard(placement)
            if not hazard:
                return NO_CHECKPOINT
            best = young_interval_s if interval_s == "young" else daly_interval_s
            interval_s = best(cost_s, 1.0 / hazard)
        if interval_s * TICKS_PER_S > LAST_TICK:
            return NO_CHECKPOINT
        return Checkpoint(ticks(interval_s), ticks(cost_s))

    @property
    def chooses(self) -> bool:
        """Whether intervals are chosen by the failures that hit a job's GPUs."""
        return self.checkpoint is not None and self.checkpoint.interval_s in BEST


def open_failures(
    name: str, checkpoint: CheckpointOptions | None, tree: ClusterTree
) -> FailuresOfRun:
    """The failures and checkpoints of a run. Options in `checkpoint` win over the model's.

    Raises:
        ConfigError: unknown name, a bad file, or a unit that the cluster lacks.
    """
    if name == NONE:
        return FailuresOfRun(None, checkpoint)
    file = load_failures(name)
    both = file.model.checkpoint if checkpoint is None else checkpoint.over(file.model.checkpoint)
    return FailuresOfRun(FailingUnits(tree, file), both)
