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
"""What the source of a rate beside other jobs ends in."""


class Rate(NamedTuple):
    """How fast a job runs on its GPUs until the rate function gives another rate.

    An iteration takes `iteration_s` seconds and is worth `worth` iterations of the job as
    submitted: 1 on the GPUs that it asked for, 0.5 on half of them. `alone_iteration_s` is what
    an iteration would take by the estimate: no other job, and no limit of the job's own uplinks.
    These make it `own_longer_s` longer, where they carry less than it sends.
    The rate function is asked again when the job has done `until_iteration` submitted iterations in
    all, or at the tick `until`. A point that does not lie after now and before the job's finish is
    ignored. The engine refuses rates that no job can run at (`engine/progress.py`).

    Of an iteration, the job computes for `Job.compute_s` x `compute_scale`: on another kind of GPUs
    that takes longer or shorter. Beside other jobs on its GPUs, compute and communication take
    `stretch` times as long; `iteration_s` and `compute_scale` include that.
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
        """Seconds per iteration of the job as submitted."""
        return self.iteration_s / self.worth

    @property
    def shared(self) -> bool:
        """Whether it is the rate of a job that shares its GPUs."""
        return self.source.endswith(SHARED)


class RateFunction(Protocol):
    """How fast jobs run: the one source of speed."""

    @property
    def links(self) -> SharedLinks:
        """What it knows of links; `NO_SHARED_LINKS` if jobs do not meet there."""
        ...

    def __call__(
        self, now: Tick, running: Mapping[int, JobView], changed: Sequence[JobView]
    ) -> Mapping[int, Rate]:
        """Rates by handle.

        `changed` holds the jobs that started, moved, were held, lost their GPUs or finished at
        this instant, those whose GPUs others have come to share or share no longer, and those whose
        rate has come to its `until`. The answer must name every one of them that runs, and may name
        any other running job. `JobView.former_placement` says which GPUs a job has left: at this
        instant if it waits, finished or `started` now.
        """
        ...

    def alone(self, job: Job, placement: Placement) -> Rate:
        """The rate of a job on some GPUs by the estimate, without any links. A policy may ask."""
        ...


class RatesAround:
    """Base of a rate function around another one; forwards what it does not change.

    `facts` are what copies of a run may share of its own: they never change.
    """

    def __init__(self, inside: RateFunction, *facts: object) -> None:
        self._inside, self._facts = inside, facts

    @property
    def facts(self) -> list[object]:
        """What copies of a run may share, also of the function inside."""
        return [*getattr(self._inside, "facts", ()), *self._facts]

    @property
    def links(self) -> SharedLinks:
        """Those of the rate function inside."""
        return self._inside.links

    def alone(self, job: Job, placement: Placement) -> Rate:
        """By the estimate of the function inside."""
        return self._inside.alone(job, placement)


class Checkpoint(NamedTuple):
    """A job writes its state after every `interval` of work, and stands still for `cost` meanwhile.

    Both are ticks. Without an interval it never does.
    """

    interval: Tick | None
    cost: Tick

    def per_iteration_s(self, every: int) -> float:
        """What it adds to an iteration if it is written after `every` of them, seconds."""
        return self.cost / every / TICKS_PER_S


NO_CHECKPOINT = Checkpoint(None, 0)

CheckpointRule: TypeAlias = "Callable[[Job, Placement], Checkpoint]"
"""When a job on some GPUs writes checkpoints; asked at the start of each stay."""
