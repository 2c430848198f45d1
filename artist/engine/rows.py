"""The rows that the engine writes: facts, one row for each thing that happened.

Statistics are computed from these rows afterwards (`artist.results.metrics`), never here.
Rows have integer ticks; files have seconds.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

from artist.cluster.placement import Placement
from artist.contract import Outage, WaitCause
from artist.units import GPU_MILLI, Tick
from artist.workload.job import Job


class EndReason(StrEnum):
    """Why an interval of constant rate ended."""

    FINISHED = "finished"
    LEASE_ENDED = "lease-ended"
    PREEMPTED = "preempted"
    CANCELLED = "cancelled"
    MIGRATED = "migrated"
    RE_RATED = "re-rated"
    HELD = "held"
    WITHDRAWN = "withdrawn"
    FAILED = "failed"


# Module names, because looking a member up in its class takes ten times as long.
FINISHED: Final = EndReason.FINISHED
LEASE_ENDED: Final = EndReason.LEASE_ENDED
PREEMPTED: Final = EndReason.PREEMPTED
CANCELLED: Final = EndReason.CANCELLED
MIGRATED: Final = EndReason.MIGRATED
RE_RATED: Final = EndReason.RE_RATED
HELD: Final = EndReason.HELD
WITHDRAWN: Final = EndReason.WITHDRAWN
FAILED: Final = EndReason.FAILED


class PlacementRow(NamedTuple):
    """A job on some GPUs at a constant rate, from `start` to `end`."""

    handle: int
    placement: Placement
    tier: int
    start: Tick
    end: Tick
    iterations: int
    iteration_s: float
    alone_iteration_s: float
    stalled: Tick
    lost: Tick
    source: str
    reason: EndReason
    note: str = ""
    """The policy's reason for the end, or what failed; empty if there is neither."""
    checkpoint_s: float = 0.0
    """Seconds that checkpoints add to an iteration."""
    compute_scale: float = 1.0
    """Compute time of an iteration over the job's `compute_s` (`Rate.compute_scale`)."""
    beside: tuple[int, ...] = ()
    """Handles of the other jobs on these GPUs, ascending."""
    batch: int = 0
    """Samples per iteration of a job with goodput parameters; 0 for other jobs."""
    stretch: float = 1.0
    """How many times longer everything takes for the jobs on these GPUs (`Rate.stretch`)."""
    gpu_milli: int = GPU_MILLI
    """Thousandths of its GPU that the job holds; the jobs beside it hold the rest."""
    own_longer_s: float = 0.0
    """Seconds that the job's own uplinks add to an iteration (`Rate.own_longer_s`)."""

    @property
    def first(self) -> bool:
        """Whether the job has the least handle on these GPUs, so that its row counts them."""
        return not self.beside or self.handle < self.beside[0]

    @property
    def sharers(self) -> float:
        """The divisor of the job's GPU time: the number of jobs that hold these GPUs in equal
        shares, or 1 / its share of a GPU."""
        return (
            1 + len(self.beside)
            if self.gpu_milli == GPU_MILLI
            else float(GPU_MILLI) / float(self.gpu_milli)
        )

    def share(self, gpu_ticks: int) -> int:
        """The part of GPU-ticks on these GPUs that counts for the job, rounded down."""
        if self.gpu_milli < GPU_MILLI:
            return gpu_ticks * self.gpu_milli // GPU_MILLI
        return gpu_ticks // (1 + len(self.beside)) if self.beside else gpu_ticks

    @property
    def held_milli(self) -> int:
        """Thousandths of GPUs that the row adds to the GPUs held; shared GPUs count once."""
        if self.gpu_milli < GPU_MILLI:
            return self.gpu_milli
        return GPU_MILLI * self.placement.gpus if self.first else 0

    @property
    def pace_s(self) -> float:
        """Seconds of one iteration with its share of a checkpoint."""
        return self.iteration_s + self.checkpoint_s

    @property
    def saving(self) -> Tick:
        """Ticks in which the job wrote checkpoints, including time that it lost later."""
        if not self.checkpoint_s:
            return 0
        return round((self.end - self.start - self.stalled) * (self.checkpoint_s / self.pace_s))

    @property
    def ended(self) -> str:
        """Why the interval ended, with `note` if there is one."""
        return f"{self.reason.value}: {self.note}" if self.note else self.reason.value


class JobRow(NamedTuple):
    """A job that finished, or was cancelled."""

    job: Job
    handle: int
    arrival: Tick
    start: Tick
    finish: Tick
    run: Tick
    preemptions: int
    migrations: int
    failures: int = 0
    left: int = 0
    """Submitted iterations that a cancelled job did not do."""

    @property
    def cancelled(self) -> bool:
        """Whether the job ended before its last iteration."""
        return self.left > 0


class WaitRow(NamedTuple):
    """Why a job waits from `tick` on, in the policy's words; empty once it gives no reason."""

    tick: Tick
    handle: int
    reason: str
    cause: WaitCause = "policy"
    until: Tick | None = None
    """When the reason ends; None if it holds for as long as the job waits."""


class WithdrawnRow(NamedTuple):
    """GPUs out of service from `tick` until the next row; none before the first row."""

    tick: Tick
    gpus: int


class OutageRow(NamedTuple):
    """GPUs that left service at `tick`, why, and the jobs stopped; or GPUs that came `back`."""

    tick: Tick
    placement: Placement
    outage: Outage | None = None
    stopped: tuple[int, ...] = ()
    back: bool = False


class NoticeRow(NamedTuple):
    """An outage that was announced at `tick` and begins at `until`.

    `gpus` are all GPUs of its leaves; `there` are the handles of jobs that held some of them.
    """

    tick: Tick
    until: Tick
    gpus: int
    outage: Outage
    there: tuple[int, ...]


class TimelineRow(NamedTuple):
    """The cluster from `tick` until the next row. `gpus_held` counts `Timeline.gpu_parts`."""

    tick: Tick
    gpus_held: int
    jobs_running: int
    jobs_waiting: int


class Timeline:
    """The rows of the timeline, as one array per column, since every question may add a row."""

    __slots__ = ("_last", "gpu_parts", "gpus_held", "jobs_running", "jobs_waiting", "tick")

    def __init__(self) -> None:
        self._last = (-1, -1, -1)
        self.gpu_parts = 1  # of a GPU
        self.tick = array("q")
        self.gpus_held = array("q")
        self.jobs_running = array("q")
        self.jobs_waiting = array("q")

    def __len__(self) -> int:
        return len(self.tick)

    def __getitem__(self, index: int) -> TimelineRow:
        return TimelineRow(
            self.tick[index],
            self.gpus_held[index],
            self.jobs_running[index],
            self.jobs_waiting[index],
        )

    def __iter__(self) -> Iterator[TimelineRow]:
        columns = zip(self.tick, self.gpus_held, self.jobs_running, self.jobs_waiting, strict=True)
        return map(TimelineRow._make, columns)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Timeline) and list(self) == list(other)

    def note(self, tick: Tick, gpus_held: int, jobs_running: int, jobs_waiting: int) -> None:
        """Add a row for the cluster from now on, if anything changed."""
        row = (gpus_held, jobs_running, jobs_waiting)
        if row == self._last:
            return
        self._last = row
        self.tick.append(tick)
        self.gpus_held.append(gpus_held)
        self.jobs_running.append(jobs_running)
        self.jobs_waiting.append(jobs_waiting)


@dataclass(slots=True)
class Rows:
    """All rows of one run, in the order in which they were written."""

    jobs: list[JobRow] = field(default_factory=list)
    placements: list[PlacementRow] = field(default_factory=list)
    timeline: Timeline = field(default_factory=Timeline)
    wait_reasons: list[WaitRow] = field(default_factory=list)
    withdrawn: list[WithdrawnRow] = field(default_factory=list)
    outages: list[OutageRow] = field(default_factory=list)
    notices: list[NoticeRow] = field(default_factory=list)
    events: int = 0
    questions: int = 0

    def note_withdrawn(self, tick: Tick, gpus: int) -> None:
        """Add a row for the GPUs out of service from now on, unless the last row is equal."""
        row = WithdrawnRow(tick, gpus)
        if not self.withdrawn or self.withdrawn[-1] != row:
            self.withdrawn.append(row)
