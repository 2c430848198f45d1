"""The contract between engine and policies: a read-only view in, decisions out.

A policy never moves a GPU and never sees the future. The engine asks it once per
instant at which something happened, after everything of that instant has
happened, and applies the decisions of one answer together, releases before
claims. A job is addressed by its `order`, its position in the order of arrival:
names cannot influence a decision.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement
from artist.cluster.tree import ClusterTree
from artist.io.documents import Document
from artist.units import Tick
from artist.workload.job import Job


@dataclass(frozen=True, slots=True)
class Start:
    """Give a waiting job these GPUs."""

    job: int
    placement: Placement


@dataclass(frozen=True, slots=True)
class Preempt:
    """Take a running job's GPUs; it waits again and keeps its whole iterations."""

    job: int


@dataclass(frozen=True, slots=True)
class Migrate:
    """Move a running job to other GPUs; it keeps its whole iterations."""

    job: int
    placement: Placement


@dataclass(frozen=True, slots=True)
class Wake:
    """Ask again at this tick even if nothing happens until then.

    A million wake-ups in a row without another decision or event are an error if less than a
    millisecond lies between them, or if nothing else is ever going to happen.
    """

    at: Tick


Decision: TypeAlias = Start | Preempt | Migrate | Wake


class JobView(Protocol):
    """What a policy may know of a job that has arrived and not finished."""

    @property
    def job(self) -> Job:
        """The job as submitted."""

    @property
    def order(self) -> int:
        """Position in the order of arrival: the job's handle."""

    @property
    def entered(self) -> Tick:
        """When it last entered the queue (arrival or preemption)."""

    @property
    def started(self) -> Tick:
        """When it got its present GPUs; of a waiting job, meaningless."""

    @property
    def placement(self) -> Placement | None:
        """Its GPUs; None while it waits."""

    @property
    def gpus(self) -> int:
        """How many GPUs it holds; 0 while it waits."""

    @property
    def tier(self) -> int:
        """Level index of the outermost level its placement spans; -1 while it waits."""

    def run_ticks(self, now: Tick) -> Tick:
        """Time for which it has held GPUs."""

    def service_gpu_s(self, now: Tick) -> float:
        """Attained service: GPUs x time held, in GPU-seconds."""

    def iterations_done(self, now: Tick) -> int:
        """Whole iterations completed."""


class ClusterView(NamedTuple):
    """The state of the cluster at a question; valid until it is answered."""

    now: Tick
    free: FreeGpus
    """Read it; take a `copy()` to try placements on."""
    waiting: Mapping[int, JobView]
    """By `order`, in the order in which they entered the queue."""
    running: Mapping[int, JobView]
    entered: Sequence[JobView]
    """Jobs that entered the queue since the last question: arrived, or preempted by its answer."""
    lease_ended: Sequence[JobView]
    """Running jobs whose lease ends now. Unless preempted or migrated they keep their
    GPUs for another lease, at no cost."""
    finished: Sequence[int]
    """Jobs that finished since the last question."""
    alone_iteration_s: Callable[[Job, Placement], float]
    """What one iteration of a job would take on some GPUs without other jobs, in seconds."""

    @property
    def cluster(self) -> ClusterTree:
        """The tree of levels."""
        return self.free.tree


Contests: TypeAlias = Callable[[Sequence[JobView], FreeGpus, Tick], bool]
"""Whether somebody contests the GPUs of jobs whose lease ends now, see `BasePolicy.contests`."""


class Policy(Protocol):
    """A scheduler. State that it keeps must survive pickling and deep copies.

    One that has no method `contests` is asked at the end of every lease.
    """

    lease: Tick | None
    """How long an allocation holds before the job competes again; None for ever."""

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        """Answer one question."""
        ...

    def tables(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """Extra result tables by name (rows as dicts), written to NAME.parquet."""
        ...


class Options(Document):
    """Base of a policy's options; every field carries help text and a sourced default."""


class BasePolicy:
    """What most policies share: no lease, no extra tables."""

    lease: Tick | None = None

    def contests(self, ended: Sequence[JobView], free: FreeGpus, now: Tick) -> bool:
        """Whether leases that end, at an instant at which nothing else happens, matter.

        False spares the question: the jobs keep their GPUs for another lease. It must be no
        less than the truth: only where `decide` would answer nothing and learn nothing.
        """
        return True

    def tables(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """No extra tables."""
        return {}
