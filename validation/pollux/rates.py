"""A rate function for the engine, from recorded step times, with that program's clock.

Progress is counted in iterations with the smallest batch, and an epoch ends at its recorded
progress. What a step is worth in it follows from batch and noise scale (`Application.gain`). The
engine and the policy see the iterations recorded with the job's own batch instead.

**The clock.** That program steps from round to round, and what is left of an epoch in its last
round is rounded to whole seconds. So a job runs at its rate up to that round, and then as much
faster or slower as it takes to end there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import NamedTuple, cast

from artist.cluster.placement import Placement, machine_counts
from artist.cluster.tree import ClusterTree
from artist.contract import NO_SHARED_LINKS, JobView, Rate
from artist.engine.job_state import JobState
from artist.units import Tick, seconds, ticks
from artist.workload.job import Job
from validation.pollux.applications import Application

_PIECES = 1_000_000
"""Iterations that the engine sees in a rate's time: a stop loses the one in progress, as no stop
does there.
"""
_EARLY = 1000
"""Ticks by which an epoch ends early, so that rounding never takes it past a round."""
_WORK = 2.0**-44
"""Submitted iterations in a unit of `Progress.work`."""
_MORE = 1e-6
"""Iterations that a rate is worth beyond its time's: rounding leaves nothing of an epoch."""


class Submitted(NamedTuple):
    """What a job runs."""

    application: Application
    batch: int
    fixed: int | None = None
    """The batch with which it runs whatever the policy chooses."""


@dataclass(slots=True)
class _Position:
    """How far a job is, and how fast it has gone since."""

    epoch: int = 0
    progress: float = 0.0
    since: Tick = 0
    per_s: float = 0.0
    ends: Tick | None = None
    """When the epoch ends, if that is in this round."""


class RecordedSteps:
    """Rates of jobs; none disturbs another."""

    links = NO_SHARED_LINKS

    def __init__(
        self,
        tree: ClusterTree,
        submitted: Mapping[str, Submitted],
        period_s: float,
    ) -> None:
        self._tree = tree
        self._submitted = submitted
        self._period = ticks(period_s)
        self._positions: dict[str, _Position] = defaultdict(_Position)

    def __call__(
        self, now: Tick, running: Mapping[int, JobView], changed: Sequence[JobView]
    ) -> Mapping[int, Rate]:
        """Rates of those changed jobs that run."""
        for view in changed:
            self._settle(view.job, _whole(now))
        return {
            view.handle: self._rate(cast(JobState, view), view.placement, now)
            for view in changed
            if view.placement is not None
        }

    def alone(self, job: Job, placement: Placement) -> Rate:
        """What that program's oracle says: one GPU always accumulates."""
        application, batch, _ = self._submitted[job.id]
        divided = application.divided(batch, placement.gpus, accumulates=True)
        step_s = application.step_s(self._counts(placement), divided)
        return Rate(step_s, 1.0, "recorded", step_s)

    def _settle(self, job: Job, now: Tick) -> None:
        position = self._positions[job.id]
        if position.ends is not None and now >= position.ends:
            position.epoch += 1
            position.progress = self._submitted[job.id].application.ends[position.epoch]
        else:
            position.progress += position.per_s * seconds(max(0, now - position.since))
        position.per_s, position.ends = 0.0, None

    def _rate(self, state: JobState, placement: Placement, now: Tick) -> Rate:
        application, submitted, fixed = self._submitted[state.job.id]
        position = self._positions[state.job.id]
        epoch = position.epoch
        batch = application.divided(
            fixed or submitted,
            placement.gpus,
            accumulates=(fixed or submitted) > application.batch,
        )
        if state.batch is not None and fixed is None:
            batch = application.within(state.batch, placement.gpus)
        gain = application.gain(batch.total(placement.gpus), epoch)
        position.per_s = gain / application.step_s(self._counts(placement), batch)
        position.since = max(_whole(now), state.productive_from)
        first, end = application.ends[epoch : epoch + 2]
        left_s = (end - position.progress) / position.per_s
        until = position.since + ticks(left_s)
        until -= until % self._period
        if until > position.since:
            end = position.progress + position.per_s * seconds(until - position.since)
        else:
            until = position.ends = position.since + ticks(round(left_s))
        iterations = (0, *application.iterations(submitted))[epoch : epoch + 2]
        share = (end - first) / (application.ends[epoch + 1] - first)
        reached = iterations[0] + share * (iterations[1] - iterations[0]) + _MORE
        duration = max(until - max(now, state.productive_from) - _EARLY, _EARLY)
        piece_s, worth = seconds(duration) / _PIECES, (reached - _done(state, now)) / _PIECES
        source = f"epoch {epoch + 1}"
        if position.ends is None:
            return Rate(piece_s, worth, source, piece_s, until=until)
        return Rate(piece_s, worth, source, piece_s, until_iteration=iterations[1])

    def _counts(self, placement: Placement) -> tuple[int, ...]:
        return tuple(sorted(machine_counts(self._tree, placement).values(), reverse=True))


def _whole(now: Tick) -> Tick:
    """To whole seconds."""
    return ticks(round(seconds(now)))


def _done(state: JobState, now: Tick) -> float:
    """Iterations of a job that are done, without the one in progress."""
    progress = deepcopy(state.progress)
    progress.settle(now)
    return progress.work * _WORK
