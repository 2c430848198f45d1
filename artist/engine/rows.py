"""What the engine writes down: facts, one row per thing that happened.

Statistics are computed from these rows afterwards (`artist.results.metrics`), never here.
Ticks stay integers; files are written in seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

from artist.cluster.placement import Placement
from artist.contract import Outage
from artist.units import Tick
from artist.workload.job import Job


class EndReason(StrEnum):
    """Why an interval of constant rate ended."""

    FINISHED = "finished"
    LEASE_ENDED = "lease-ended"
    PREEMPTED = "preempted"
    MIGRATED = "migrated"
    RE_RATED = "re-rated"
    HELD = "held"
    WITHDRAWN = "withdrawn"
    FAILED = "failed"


# As names of their own: looking a member up in its class takes ten times as long.
FINISHED: Final = EndReason.FINISHED
LEASE_ENDED: Final = EndReason.LEASE_ENDED
PREEMPTED: Final = EndReason.PREEMPTED
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
    """Why, in the policy's words, or what failed; empty where there is no more to say."""
    checkpoint_s: float = 0.0
    """What checkpoints add to an iteration."""

    @property
    def pace_s(self) -> float:
        """Time of one iteration with its share of a checkpoint."""
        return self.iteration_s + self.checkpoint_s

    @property
    def saving(self) -> Tick:
        """Ticks in which the job wrote checkpoints, also such as it lost later."""
        if not self.checkpoint_s:
            return 0
        return round((self.end - self.start - self.stalled) * (self.checkpoint_s / self.pace_s))

    @property
    def ended(self) -> str:
        """Why it ended, with the policy's reason if it gave one."""
        return f"{self.reason.value}: {self.note}" if self.note else self.reason.value


class JobRow(NamedTuple):
    """A finished job."""

    job: Job
    handle: int
    arrival: Tick
    start: Tick
    finish: Tick
    run: Tick
    preemptions: int
    migrations: int
    failures: int = 0


class WaitRow(NamedTuple):
    """Why a job waits from `tick` on, in the policy's words."""

    tick: Tick
    handle: int
    reason: str


class WithdrawnRow(NamedTuple):
    """GPUs out of service from `tick` until the next row; 0 before the first."""

    tick: Tick
    gpus: int


class OutageRow(NamedTuple):
    """GPUs that left service at `tick`, why, and the jobs that it stopped; or GPUs came `back`."""

    tick: Tick
    placement: Placement
    outage: Outage | None = None
    stopped: tuple[int, ...] = ()
    back: bool = False


class NoticeRow(NamedTuple):
    """An outage was told of at `tick`. It begins at `until`, and jobs held GPUs there."""

    tick: Tick
    until: Tick
    gpus: int
    outage: Outage
    there: tuple[int, ...]


class TimelineRow(NamedTuple):
    """The cluster from `tick` until the next row."""

    tick: Tick
    gpus_held: int
    jobs_running: int
    jobs_waiting: int


@dataclass(slots=True)
class Rows:
    """All rows of one run, in the order in which they came about."""

    jobs: list[JobRow] = field(default_factory=list)
    placements: list[PlacementRow] = field(default_factory=list)
    timeline: list[TimelineRow] = field(default_factory=list)
    told: list[WaitRow] = field(default_factory=list)
    withdrawn: list[WithdrawnRow] = field(default_factory=list)
    outages: list[OutageRow] = field(default_factory=list)
    notices: list[NoticeRow] = field(default_factory=list)
    events: int = 0
    questions: int = 0

    def note(self, tick: Tick, gpus_held: int, jobs_running: int, jobs_waiting: int) -> None:
        """The cluster as it is from now on: a row of the timeline, if anything changed."""
        if self.timeline:
            _, held, running, waiting = self.timeline[-1]
            if gpus_held == held and jobs_running == running and jobs_waiting == waiting:
                return
        self.timeline.append(TimelineRow(tick, gpus_held, jobs_running, jobs_waiting))

    def note_withdrawn(self, tick: Tick, gpus: int) -> None:
        """GPUs out of service from now on, unless that is the last row already."""
        row = WithdrawnRow(tick, gpus)
        if not self.withdrawn or self.withdrawn[-1] != row:
            self.withdrawn.append(row)
