"""How fast jobs run, and the checkpoints that cost them time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol, TypeAlias

from artist.cluster.placement import Placement
from artist.contract.links import SharedLinks
from artist.contract.views import JobView
from artist.units import TICKS_PER_S, Tick
from artist.workload.job import Job

SHARED: Final = "+shared"
"""The end of a rate's `source` if the job shares its GPUs."""


class Rate(NamedTuple):
    """How fast a job runs on its GPUs until the rate function gives another rate.

    An iteration takes `iteration_s` seconds and is worth `worth` iterations of the job as
    submitted: 1 on the GPUs that it asked for, 0.5 on half of them. `alone_iteration_s` is the
    iteration by the estimate, without other jobs and without limits of the job's own uplinks.
    `own_longer_s` is what these uplinks add where they carry less than the job sends.

    The rate function is asked again when the job has done `until_iteration` submitted iterations in
    all, or at the tick `until`. A point that is not after now and before the job's finish is
    ignored. The engine refuses rates that no job can run at (`engine/progress.py`).

    In an iteration the job computes for `Job.compute_s` x `compute_scale` seconds, which depends on
    the kind of GPUs. If other jobs share its GPUs, compute and communication take `stretch` times
    as long; `iteration_s` and `compute_scale` include that.
    """

    iteration_s: float
    worth: float
    source: str
    alone_iteration_s: float
    until_iteration: float | None = None
    until: Tick | None = None
    compute_scale: float = 1.0
    stretch: float = 1.0
    own_longer_s: float = 0.0

    def same_speed(self, other: Rate) -> bool:
        """Whether the rates are equal apart from `until` and `until_iteration`."""
        return (
            self.iteration_s == other.iteration_s
            and self.worth == other.worth
            and self.source == other.source
            and self.alone_iteration_s == other.alone_iteration_s
        )

    @property
    def submitted_iteration_s(self) -> float:
        """Seconds per submitted iteration of the job."""
        return self.iteration_s / self.worth

    @property
    def shared(self) -> bool:
        """Whether the job shares its GPUs."""
        return self.source.endswith(SHARED)


class RateFunction(Protocol):
    """How fast jobs run: the one source of speed."""

    @property
    def links(self) -> SharedLinks:
        """What it says about links; `NO_SHARED_LINKS` if jobs share none."""
        ...

    def __call__(
        self, now: Tick, running: Mapping[int, JobView], changed: Sequence[JobView]
    ) -> Mapping[int, Rate]:
        """Rates by handle.

        `changed` holds the jobs that started, moved, were held, got another batch, lost their GPUs
        or finished at this instant; jobs whose GPUs other jobs began or ceased to share; and jobs
        whose rate has come to its `until`. The answer must name every one of them that runs, and
        may name any other running job. `JobView.former_placement` holds the GPUs that a job has
        left: at this instant if it waits, finished or `started` now.
        """
        ...

    def alone(self, job: Job, placement: Placement) -> Rate:
        """The rate of a job on some GPUs by the estimate, without shared links, for policies."""
        ...


class RatesAround:
    """Base of a rate function around another one. It forwards what it does not change.

    `facts` are objects of its own that never change, so that copies of a run may share them.
    """

    def __init__(self, inside: RateFunction, *facts: object) -> None:
        self._inside, self._facts = inside, facts

    @property
    def facts(self) -> list[object]:
        """Objects that copies of a run may share, including those of the function inside."""
        return [*getattr(self._inside, "facts", ()), *self._facts]

    @property
    def links(self) -> SharedLinks:
        """The links of the rate function inside."""
        return self._inside.links

    def alone(self, job: Job, placement: Placement) -> Rate:
        """The rate by the estimate of the function inside."""
        return self._inside.alone(job, placement)


class Checkpoint(NamedTuple):
    """A job writes its state after every `interval` of work, and stands still for `cost` meanwhile.

    Both are in ticks. If `interval` is None, the job writes no checkpoints.
    """

    interval: Tick | None
    cost: Tick

    def per_iteration_s(self, every: int) -> float:
        """Seconds that checkpoints add to an iteration, if one is written after `every` of them."""
        return self.cost / every / TICKS_PER_S


NO_CHECKPOINT = Checkpoint(None, 0)

CheckpointRule: TypeAlias = "Callable[[Job, Placement], Checkpoint]"
"""When a job on some GPUs writes checkpoints; asked at the start of each stay."""
