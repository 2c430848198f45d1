"""What a policy may answer: start, preempt, migrate or hold a job, set its batch, fetch its tables,
wake up later, give a reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from artist.cluster.placement import Placement
from artist.units import Tick
from artist.workload.goodput import Batch

MOST_JOBS_PER_GPU = 4
"""The most jobs that may hold one GPU. Published packing uses two (Gandiva, Gavel, Lucid)."""


@dataclass(frozen=True, slots=True)
class Start:
    """Give a waiting job these GPUs.

    With `beside`, the job shares all GPUs of another job, whose handle this is. The other job keeps
    its GPUs, or gets them by an earlier decision of the answer. The policy says how many jobs may
    share one GPU (`jobs_per_gpu`).
    """

    handle: int
    placement: Placement
    beside: int | None = None


@dataclass(frozen=True, slots=True)
class Preempt:
    """Take a running job's GPUs. It waits again and keeps its whole iterations.

    `reason`, if given, is recorded with the end of the job's interval. A job that is preempted for
    good is cancelled: it never waits again, and the next question names it among `finished`.
    """

    handle: int
    reason: str = ""
    for_good: bool = False


@dataclass(frozen=True, slots=True)
class Migrate:
    """Move a running job to other GPUs. It keeps its whole iterations; `reason` as in `Preempt`,
    `beside` as in `Start`."""

    handle: int
    placement: Placement
    reason: str = ""
    beside: int | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """When a job's iterations are to start, so that jobs of one group send in turn (time-shifts).

    They start at `start`, and then every `period`. Only the differences between jobs of a group
    count: if one falls behind, the others wait for it. A job that needs less than `period` waits
    for the slowest job. Any job waits once it is ahead by more than `slack`. If `slack` is None, no
    job waits, so the jobs drift apart.
    """

    group: int
    start: Tick
    period: Tick
    slack: Tick | None


@dataclass(frozen=True, slots=True)
class Hold:
    """Let a job keep its GPUs and stand still until a tick; `reason` as in `Preempt`.

    With `turn`, the job takes turns with others from then on, as long as it keeps its GPUs. A hold
    without `turn` ends this. Rate functions that know phases take turns into account.

    The job must run once the answer is applied: it runs already, or the same answer starts it. The
    iteration in progress goes on afterwards where it stopped; a restart goes on during the hold. A
    shorter hold does not end a longer one.

    A hold does not move the due tick of a lease. A lease that is due during the hold ends with the
    first iteration after it. The reason of a hold is not recorded if the same answer starts the
    job, because no interval ends.
    """

    handle: int
    until: Tick
    reason: str = ""
    turn: Turn | None = None


@dataclass(frozen=True, slots=True)
class SetBatch:
    """Let a job with goodput parameters train with another batch, as long as it keeps its GPUs.

    The job must run once the answer is applied: it runs already, or the same answer starts or moves
    it. Without this decision, a stay begins with the submitted batch. The iteration in progress
    goes on where it is. Nothing is restarted: jobs change their batch between iterations (Qiao et
    al., *Pollux*, OSDI 2021, section 4.3).
    """

    handle: int
    batch: Batch


@dataclass(frozen=True, slots=True)
class Wake:
    """Ask again at this tick even if nothing happens until then.

    Waking up forever without deciding anything is an error (`engine/livelock.py`).
    """

    at: Tick


LONGEST_REASON = 200
"""Characters of a reason. There may be one reason per job and question."""

WaitCause: TypeAlias = Literal[
    "timer", "consolidation", "links", "quota", "data", "notice", "cpu_cores", "memory",
    "gpu_memory", "mig", "gpu_kind", "policy",
]  # fmt: skip
"""What keeps a job from GPUs that it could have.

In this order: a delay timer; GPUs that are too far apart; losses of this or other jobs on shared
links; a quota; tables in other regions; GPUs that will soon leave service; too few free CPU cores
or too little free memory on machines with free GPUs; too little memory on GPUs with room; MIG
instances there; a kind of GPUs that the job does not accept; any other reason of the policy."""

WAIT_CAUSES: tuple[WaitCause, ...] = get_args(WaitCause)


@dataclass(frozen=True, slots=True)
class Wait:
    """Say why a job waits, in at most `LONGEST_REASON` characters. It changes nothing else.

    The job must wait once the answer is applied. The reason stands until the policy gives another
    one, the job gets GPUs, or `until` is reached. An empty reason takes the last one back. Give a
    `cause` only if the job would start at this question without it. Repeating a reason writes no
    row but is slow, so a policy should remember what it gave.
    """

    handle: int
    reason: str
    cause: WaitCause = "policy"
    until: Tick | None = None


@dataclass(frozen=True, slots=True)
class Fetch:
    """Copy the tables of a waiting job to one of these regions. It changes nothing else.

    Of the regions that are large enough and have room, it is the one that lacks the fewest bytes.
    While tables of the job are being copied, nothing else is copied for it. Only runs that copy
    data accept this decision (`DataView.copied`).
    """

    handle: int
    regions: tuple[int, ...]


Decision: TypeAlias = Start | Preempt | Migrate | Hold | SetBatch | Wake | Wait | Fetch
