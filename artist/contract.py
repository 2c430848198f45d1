"""What the engine, policies and rate functions agree on.

    engine --ClusterView--> policy        --Decision-->     engine    at a question
    engine --JobView-->     rate function --Rate-->         engine    when jobs change
                            event source  --OutsideEvent--> engine    what no trace tells

The engine owns time and GPUs. A policy never moves a GPU and never sees the future. The engine
asks it at most once per instant, after everything of that instant has happened. It applies the
decisions of one answer together: first it releases GPUs, then it claims GPUs.

A job is addressed by its **handle**: its position in the order of arrival. Policies and rate
functions get no other name of a job, so a name cannot influence a result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeAlias

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement
from artist.cluster.tree import ClusterTree
from artist.errors import InvariantError
from artist.io.documents import Document
from artist.units import TICKS_PER_S, Tick
from artist.workload.job import Job

# -- decisions -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Start:
    """Give a waiting job these GPUs."""

    handle: int
    placement: Placement


@dataclass(frozen=True, slots=True)
class Preempt:
    """Take a running job's GPUs. It waits again and keeps its whole iterations.

    `reason`, if given, is written beside the end of the job's interval.
    """

    handle: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Migrate:
    """Move a running job to other GPUs. It keeps its whole iterations; `reason` as in `Preempt`."""

    handle: int
    placement: Placement
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """When a job's iterations are to start, so that jobs of one group send in turn (time-shifts).

    At `start`, and then every `period`. Only the differences between jobs of a group count: where
    one falls behind, the others wait for it. A job is made to wait once it is ahead by more than
    `slack`; with None never, so that the jobs drift apart.
    """

    group: int
    start: Tick
    period: Tick
    slack: Tick | None


@dataclass(frozen=True, slots=True)
class Hold:
    """Let a job keep its GPUs and stand still until a tick; `reason` as in `Preempt`.

    With `turn`, the job takes turns with others from then on, as long as it keeps its GPUs. A hold
    without one ends that. Rate functions that know phases take turns into account.

    The job must run once the answer is applied: it runs already, or the same answer starts it. The
    iteration in progress goes on afterwards where it stopped; a restart goes on during the hold. A
    shorter hold does not end a longer one.

    A lease keeps its due tick. If that falls into the hold, the lease ends at the first end of an
    iteration after it. A hold in the answer that starts its job ends no interval, so its reason is
    not written.
    """

    handle: int
    until: Tick
    reason: str = ""
    turn: Turn | None = None


@dataclass(frozen=True, slots=True)
class Wake:
    """Ask again at this tick even if nothing happens until then.

    Waking up for ever without deciding anything is an error (`engine/livelock.py`).
    """

    at: Tick


MOST_WORDS = 200
"""A reason is a sentence of this many characters at most; there may be one per job and question."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Tell why a job waits, in at most `MOST_WORDS` characters. It changes nothing else.

    The job must wait once the answer is applied. The words stand until the policy tells others or
    the job gets GPUs, so telling the same again writes no row.
    """

    handle: int
    reason: str


Decision: TypeAlias = Start | Preempt | Migrate | Hold | Wake | Wait

# -- rates ---------------------------------------------------------------------------


class Rate(NamedTuple):
    """How fast a job runs on its GPUs until the engine is told otherwise.

    An iteration takes `iteration_s` seconds and is worth `worth` iterations of the job as
    submitted: 1 on the GPUs that it asked for, 0.5 on half of them. `alone_iteration_s` is what
    an iteration would take by the estimate: no other job, and no limit of the job's own uplinks.
    The rate function is asked again when the job has done `until_iteration` submitted iterations in
    all, or at the tick `until`. A point that does not lie after now and before the job's finish is
    ignored. The engine refuses rates that no job can run at (`engine/progress.py`).
    """

    iteration_s: float
    worth: float
    source: str
    alone_iteration_s: float
    until_iteration: float | None = None
    until: Tick | None = None

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


Uplink: TypeAlias = "tuple[int, int]"
"""Level of the tree, and unit of this level: its links to and from the rest."""

Moves: TypeAlias = "Mapping[int, tuple[Job, Placement] | None]"
"""By handle: where a job would be; None if it would have no GPUs."""


class Slowdowns(NamedTuple):
    """How much longer iterations take than without others, on average: 0.1 is 10 % longer."""

    own: float
    """Of the job that was asked about."""
    beside: Mapping[int, float]
    """By handle: of every job that shares a link with it which binds."""

    @property
    def most(self) -> float:
        """The largest of them."""
        return max(self.own, *self.beside.values(), 0.0)


class UpPhase(NamedTuple):
    """What a job sends over an uplink, alone: from `up_s` before the end of its iteration on."""

    up_s: float
    out_bytes_per_s: float
    in_bytes_per_s: float


class LinkPattern(NamedTuple):
    """What a job does on links in every iteration, alone. Down comes first, then Up, once."""

    iteration_s: float
    up: Mapping[Uplink, UpPhase]
    """By uplink on which the job sends."""


class SharedLinks(Protocol):
    """What a rate function says about links before jobs are on them.

    `moves` change where jobs are. An answer depends on no name.
    """

    @property
    def phases_count(self) -> bool:
        """Whether speeds depend on when jobs send: `Turn` has an effect."""
        ...

    def pattern(self, job: Job, placement: Placement) -> LinkPattern:
        """What a job on these GPUs sends on which uplinks; nothing if that is not known."""
        ...

    def capacity(self, uplink: Uplink) -> float:
        """Bytes per second that an uplink carries in one direction."""
        ...

    def busy(self, moves: Moves) -> Mapping[Uplink, float]:
        """How busy uplinks are; 0 for those that are missing. Larger is busier."""
        ...

    def slowdowns(self, job: Job, placement: Placement, moves: Moves) -> Slowdowns:
        """What a job on these GPUs would lose, and who is beside it. A lone job loses nothing."""
        ...


class PatternsUnknown:
    """What jobs send on links is not known. A base of `SharedLinks` that know no bytes."""

    phases_count = False

    def pattern(self, job: Job, placement: Placement) -> LinkPattern:
        """A job that sends nothing."""
        return LinkPattern(math.inf, {})

    def capacity(self, uplink: Uplink) -> float:
        """Whatever is sent."""
        return math.inf


class NoSharedLinks(PatternsUnknown):
    """Jobs do not meet on links: nothing is busy, and nobody loses anything."""

    def busy(self, moves: Moves) -> Mapping[Uplink, float]:
        """Nothing is busy."""
        return {}

    def slowdowns(self, job: Job, placement: Placement, moves: Moves) -> Slowdowns:
        """Nobody is slowed down."""
        return Slowdowns(0.0, {})


NO_SHARED_LINKS = NoSharedLinks()


class LinksNow:
    """Links at a question: of a rate function that has not heard yet who has just lost GPUs."""

    def __init__(self, links: SharedLinks, gone: Moves) -> None:
        self._links, self._gone = links, gone
        self.phases_count = links.phases_count
        self.pattern = links.pattern
        self.capacity = links.capacity

    def busy(self, moves: Moves) -> Mapping[Uplink, float]:
        """As `SharedLinks.busy`."""
        return self._links.busy({**self._gone, **moves})

    def slowdowns(self, job: Job, placement: Placement, moves: Moves) -> Slowdowns:
        """As `SharedLinks.slowdowns`."""
        return self._links.slowdowns(job, placement, {**self._gone, **moves})


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
        this instant, and those whose rate has come to its `until`. The answer must name every one
        of them that runs, and may name any other running job. `JobView.former_placement` tells
        which GPUs a job has left: at this instant if it waits, finished or `started` now.
        """
        ...

    def alone(self, job: Job, placement: Placement) -> Rate:
        """The rate of a job on some GPUs by the estimate, without any links. A policy may ask."""
        ...


# -- what a policy sees --------------------------------------------------------------


class JobView(Protocol):
    """What a policy or rate function may know of a job that has arrived.

    A policy gets jobs that have not finished; a rate function also those that finish now.
    """

    @property
    def job(self) -> Job:
        """The job as submitted."""

    @property
    def handle(self) -> int:
        """Position in the order of arrival: how decisions and mappings name the job."""

    @property
    def entered(self) -> Tick:
        """When it last entered the queue (arrival, or loss of its GPUs)."""

    @property
    def started(self) -> Tick:
        """When it got its present GPUs. Without meaning for a waiting job."""

    @property
    def placement(self) -> Placement | None:
        """Its GPUs; None while it waits."""

    @property
    def former_placement(self) -> Placement | None:
        """The GPUs of its stay before this one, or of its last stay if it waits; else None."""

    @property
    def gpus(self) -> int:
        """How many GPUs it holds; 0 while it waits."""

    @property
    def tier(self) -> int:
        """Index of the outermost level that its placement spans; -1 while it waits."""

    def run_ticks(self, now: Tick) -> Tick:
        """Time for which it has held GPUs."""

    def service_gpu_ticks(self, now: Tick) -> int:
        """Attained service: GPUs x time held, exactly."""

    def service_gpu_s(self, now: Tick) -> float:
        """Attained service in GPU-seconds, rounded. Compare `service_gpu_ticks` instead."""

    def iterations_done(self, now: Tick) -> int:
        """Whole iterations completed."""

    def phase(self, now: Tick) -> float:
        """The part of the iteration in progress that is done, from 0 to below 1."""

    @property
    def rate(self) -> Rate | None:
        """How fast it has run since the last question; None while it waits."""

    @property
    def productive_from(self) -> Tick:
        """When its last restart or hold ends: before, it stands still."""

    @property
    def turn(self) -> Turn | None:
        """When its iterations are to start, if it takes turns with others."""


class DataView(Protocol):
    """Which tables are where, as a policy may know it. Regions are units of the level `region`."""

    def regions_holding(self, job: Job) -> tuple[int, ...]:
        """The regions that hold every table of a job, ascending; all if it names no table."""
        ...

    def missing_bytes(self, job: Job, region: int) -> int:
        """Bytes of the job's tables that a region does not hold yet."""
        ...


class WhatIf(Protocol):
    """Tries an answer on a copy of the run, in which no job arrives any more and nothing fails."""

    def __call__(self, answer: Sequence[Decision], policy: Policy) -> Mapping[int, Tick]:
        """When each job in the system would finish, by handle.

        The copy is given the answer, and from then on asks a copy of `policy`. Neither the run nor
        the policy changes.

        Raises:
            PolicyError: the answer is unlawful, or jobs are left over.
        """
        ...


def nothing_to_try(answer: Sequence[Decision], policy: Policy) -> Mapping[int, Tick]:
    """Where there is no run: of a view that was made by hand."""
    raise InvariantError("this view is of no run, so nothing can be tried")


NOBODY_ON_NOTICE: Mapping[int, Tick] = MappingProxyType({})


class ClusterView(NamedTuple):
    """The state of the cluster at a question; valid until the question is answered."""

    now: Tick
    free: FreeGpus
    """Read it. Take a `copy()` to try placements on."""
    waiting: Mapping[int, JobView]
    """By handle, in the order in which the jobs entered the queue."""
    running: Mapping[int, JobView]
    """By handle."""
    entered: Sequence[JobView]
    """Jobs that entered the queue since the last question. They arrived or lost their GPUs."""
    lease_ended: Sequence[JobView]
    """Running jobs whose lease ends now. A job that is neither preempted nor migrated keeps its
    GPUs for another lease, at no cost."""
    finished: Sequence[int]
    """Handles of the jobs that finished since the last question."""
    alone: Callable[[Job, Placement], Rate]
    """The rate of a job on some GPUs by the estimate, without any links (`RateFunction.alone`)."""
    links: SharedLinks
    """How busy links are, and what a job would lose on them (`RateFunction.links`)."""
    what_if: WhatIf = nothing_to_try
    """What an answer would lead to if nobody came any more. It costs a run of the jobs here."""
    data: DataView | None = None
    """Which tables are where; None in a run without data (`artist/data`)."""
    on_notice: Mapping[int, Tick] = NOBODY_ON_NOTICE
    """Leaves that will leave service, and when. Jobs there may stay until then, or leave. None of
    these GPUs is free, and none becomes free: no job may start on them or move to them."""

    @property
    def cluster(self) -> ClusterTree:
        """The tree of levels."""
        return self.free.tree

    def frees(self, job: JobView) -> bool:
        """Whether others could get the GPUs of a running job: none of them is on notice."""
        if not self.on_notice or job.placement is None:
            return True
        return not any(leaf in self.on_notice for leaf in job.placement.leaves)


# -- policies ------------------------------------------------------------------------


CORE_TABLES = (
    "jobs", "placements", "timeline", "waits", "links", "turns", "outages", "failure_sizes",
    "tenants", "tenant_use", "priorities",
)  # fmt: skip
"""The tables that a run itself may have; no policy may give tables of these names."""


class Policy(Protocol):
    """A scheduler. State that it keeps must survive pickling and deep copies.

    It is made from its options; a wrapper also from its host. If the constructor has a parameter
    `draws`, it gets the run's random numbers (`artist.rng.Draws`). A policy takes chance from
    nowhere else.
    """

    lease: Tick | None
    """How long a job keeps its GPUs before it competes again; None for ever. The simulator is given
    it once, at the start."""

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        """Answer one question."""
        ...

    def contests(self, ended: Sequence[JobView], free: FreeGpus, now: Tick) -> bool:
        """Whether leases that end matter, at an instant at which nothing else asks a question.

        It is not asked where a job arrives, finishes or was preempted, or a wake-up is due: there
        `decide` is. A rate that changes asks no question.

        The answer False spares the question: the jobs keep their GPUs for another lease. Return
        False only if `decide` would return no decisions and would not change the policy's state.
        """
        ...

    def tables(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """Extra result tables by name, written to NAME.parquet when all jobs have finished.

        A table is a list of rows, dicts with the same keys. None of `CORE_TABLES` may be a name.
        """
        ...


class Options(Document):
    """Base of a policy's options. Every field has help text and a default with its source."""


class BasePolicy:
    """What most policies share: no lease, every end of a lease is a question, no extra tables."""

    lease: Tick | None = None
    remembers_placements = False
    """Whether it keeps books of its own of who has which GPUs. Then no wrapper may give a job other
    GPUs than it does."""

    reads_gpu_kinds = False
    """Whether it gives jobs GPUs of the kinds that they accept only (`Job.gpu_kinds`)."""

    def contests(self, ended: Sequence[JobView], free: FreeGpus, now: Tick) -> bool:
        """True. Override it to save questions (`Policy.contests`)."""
        return True

    def tables(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """No extra tables."""
        return {}


class WrapperPolicy:
    """Base of a policy that takes another one inside and forwards what it does not change."""

    def __init__(self, host: Policy) -> None:
        self.host = host
        self.lease = host.lease
        self.remembers_placements = getattr(host, "remembers_placements", False)

    @property
    def called(self) -> str:
        """What messages call it."""
        return type(self).__name__

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        """The answer of the policy inside."""
        return self.host.decide(view)

    def contests(self, ended: Sequence[JobView], free: FreeGpus, now: Tick) -> bool:
        """What the policy inside says."""
        return self.host.contests(ended, free, now)

    def tables(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """The tables of the policy inside."""
        return self.host.tables()


def policy_name(policy: Policy) -> str:
    """What messages call a policy: its class, unless it says otherwise."""
    return str(getattr(policy, "called", type(policy).__name__))


# -- checkpoints ---------------------------------------------------------------------


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


# -- events from outside the trace ---------------------------------------------------


@dataclass(frozen=True, slots=True)
class Outage:
    """Why GPUs leave service, and what that does to the jobs on them.

    `kind` and `unit` say what fails or is maintained: `machine` 3, the `rack` 0, the `link` 5 (the
    unit whose uplink it is), the `gpu` 17. `until` is when it will be back.
    """

    kind: str
    unit: int
    until: Tick
    failed: bool = True
    """Jobs fall back to their last checkpoint. Else, as at maintenance, they save and lose no
    whole iteration."""

    @property
    def text(self) -> str:
        """What happened, in a few words: `machine 3 failed`."""
        return f"{self.kind} {self.unit} {'failed' if self.failed else 'in maintenance'}"


@dataclass(frozen=True, slots=True)
class Withdraw:
    """Take GPUs out of service at a tick.

    The free GPUs of a leaf leave first. If they are too few, jobs there lose all their GPUs, the
    latest arrival first, until enough are free. Not so with a `position`, which means one GPU: the
    GPUs in service of its leaf are those of running jobs, by handle, and then the free ones; the
    GPU at this position leaves, and the job that holds it loses all its GPUs.

    Without an `outage` jobs keep their whole iterations. GPUs that a `Notice` keeps out of service
    count as in service and free here.
    """

    at: Tick
    placement: Placement
    outage: Outage | None = None
    position: int | None = None


@dataclass(frozen=True, slots=True)
class Restore:
    """Bring withdrawn GPUs back at a tick."""

    at: Tick
    placement: Placement


@dataclass(frozen=True, slots=True)
class Notice:
    """Tell at a tick that whole leaves will leave service at `until`, with a `Withdraw`.

    From now on their free GPUs are out of service, and so is each GPU there that a job gives back.
    `outage` is what is to come.
    """

    at: Tick
    leaves: tuple[int, ...]
    until: Tick
    outage: Outage


OutsideEvent: TypeAlias = Withdraw | Restore | Notice


class EventSource(Protocol):
    """Events that the trace does not tell, such as outages of machines.

    State that it keeps must survive pickling and deep copies, as a policy's.
    """

    def next_event(self, now: Tick) -> OutsideEvent | None:
        """The next event, at `now` or later; None if there is no other.

        The engine asks once at the start, and for the next one after handling each. The `at` of
        events never decreases.
        """
        ...
