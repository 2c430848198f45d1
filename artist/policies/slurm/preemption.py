"""Which running jobs lose their GPUs to a job, and when: `preempt/qos`, `preempt/partition_prio`.

| PreemptMode | |
| --- | --- |
| `REQUEUE` | the job waits again; with --no-requeue, or JobRequeue=0, it ends |
| `CANCEL` | the job ends |
| `SUSPEND` | no job is preempted: a suspended one keeps its GRES, so no GPUs would become free |

Candidates are sorted by the priority of their QOS (or PriorityTier), then by machines, fewest
first. They are removed one after the other until the job fits. Then the candidates that gave most
of the machines are put first, and Slurm tries again (`preempt_reorder_count`).

A requeued job waits. slurmctld does not start it for two minutes, because the credential of its
last start is valid that long.

With a GraceTime (of the QOS, or of the partition) a job is told to leave and runs on. The job that
wants its GPUs tries again whenever KillWait and MessageTimeout have passed, and takes them at the
first try after the grace. Every 30 s slurmctld ends the jobs whose grace is over.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from artist.policies.slurm.machines import Free
from artist.policies.slurm.request import Request
from artist.policies.slurm.running import RunningJob
from artist.policies.slurm.selection import Selection
from artist.policies.slurm.settings import SlurmSettings, mode_of

REQUEUE_DELAY_S = 121
"""Lifetime of a job credential, 120 s (slurm.conf, AuthInfo cred_expire), plus one second."""

TIMEOUT_CHECK_S = 30
"""How often slurmctld looks for jobs that have run too long (PERIODIC_TIMEOUT)."""

_LAST = 99999
"""Weight of the last candidate taken, which made the job fit: it comes first in the next try."""


class Preemption:
    """Which running jobs may make room for a job, and which of them do."""

    def __init__(self, settings: SlurmSettings) -> None:
        self._settings = settings
        self._type = "none" if settings.preempt_mode == "OFF" else settings.preempt_type
        self.spared = False
        """Whether a job was not preempted because its PreemptExemptTime had not passed."""

    @property
    def on(self) -> bool:
        """Whether any job can be preempted."""
        return self._type in ("qos", "partition_prio")

    def before(self, one: Request, other: Request) -> bool:
        """Whether a job could preempt another job, and so comes before it."""
        if self._type == "qos":
            if one.qos is None or other.qos is None:
                return False
            return other.qos.name in one.qos.preempts and one.qos.name != other.qos.name
        return one.partition.tier > other.partition.tier

    def candidates(
        self,
        request: Request,
        running: Iterable[RunningJob],
        requests: Mapping[int, Request],
        now_s: int,
    ) -> list[RunningJob]:
        """The running jobs that may be preempted for a job, in Slurm's order."""
        found = []
        for job in running:
            other = requests[job.handle]
            if (
                job.machines & request.partition.machines
                and self.mode(other) in ("REQUEUE", "CANCEL")
                and self.before(request, other)
            ):
                if now_s - job.start_s < self._exempt_s(other):
                    self.spared = True
                else:
                    found.append(job)
        if "preempt_youngest_first" in self._settings.switches:
            return sorted(found, key=lambda job: (-job.start_s, job.handle))
        return sorted(found, key=lambda job: (self._rank(requests[job.handle]), job.handle))

    def choose(
        self,
        request: Request,
        free: Free,
        among: int,
        candidates: Sequence[RunningJob],
        selection: Selection,
    ) -> tuple[int, list[RunningJob]] | None:
        """The machines for a job and the jobs that leave them; None if it still does not fit."""
        order = list(candidates)
        reorders = self._settings.numbers["preempt_reorder_count"]
        for attempt in range(1, reorders + 3):
            found = _fewest(request, free, among, order, selection)
            if found is None:
                return None
            chosen, gone = found
            if attempt > reorders + 1 or attempt >= len(order):
                break
            weights = {job.handle: (job.machines & chosen).bit_count() for job in gone[:-1]}
            weights[gone[-1].handle] = _LAST
            if "preempt_strict_order" in self._settings.switches:
                order.sort(key=lambda job: job.handle != gone[-1].handle)
            else:
                order.sort(key=lambda job: -weights.get(job.handle, 0))
        return chosen, [job for job in gone if job.machines & chosen]

    def mode(self, request: Request) -> str:
        """The PreemptMode of a job: what becomes of it when it is preempted."""
        if self._type == "partition_prio":
            mode = mode_of(request.partition.preempt_mode)
        else:
            own = "CLUSTER" if request.qos is None else mode_of(request.qos.preempt_mode)
            mode = self._settings.preempt_mode if own == "CLUSTER" else own
        requeues = self._settings.requeues if request.requeues is None else request.requeues
        return "CANCEL" if mode == "REQUEUE" and not requeues else mode

    def grace_s(self, request: Request) -> int:
        """For how many seconds a preempted job runs on."""
        if self._type == "partition_prio":
            return request.partition.grace_s
        return 0 if request.qos is None else request.qos.grace_s

    def _exempt_s(self, request: Request) -> int:
        own_s = None if request.qos is None else request.qos.exempt_s
        return self._settings.preempt_exempt_s if own_s is None else own_s

    def _rank(self, request: Request) -> tuple[int, int]:
        if self._type == "partition_prio":
            return request.partition.tier, request.nodes
        return 0 if request.qos is None else request.qos.priority, request.nodes


def _fewest(
    request: Request, free: Free, among: int, order: Sequence[RunningJob], selection: Selection
) -> tuple[int, list[RunningJob]] | None:
    """The machines for a job, and the shortest prefix of the candidates whose leaving suffices.

    None if the job does not fit even when all of them leave.
    """
    trial, gone = free.copy(), list[RunningJob]()
    for job in order:
        job.leave(trial)
        gone.append(job)
        chosen = selection.choose(request, trial, among)
        if chosen is not None:
            return chosen, gone
    return None


@dataclass(frozen=True, slots=True)
class Grace:
    """Until when a job that is told to leave may run on, and the job that wants its GPUs."""

    until_s: int
    preemptor: int


class Graces:
    """The jobs that were told to leave, and when other jobs last tried to take their GPUs."""

    def __init__(self, again_s: int) -> None:
        self._again_s = again_s
        self._tried: dict[int, int] = {}
        self.of: dict[int, Grace] = {}
        """The graces by handle of the job that leaves."""

    def may_try(self, preemptor: int, now_s: int) -> bool:
        """Whether a job may take GPUs: KillWait and MessageTimeout have passed since it tried."""
        return now_s - self._tried.get(preemptor, -self._again_s) >= self._again_s

    def give(self, handle: int, preemptor: int, grace_s: int, now_s: int) -> bool:
        """Whether a job runs on because its grace is not over. The first call starts the grace."""
        if not grace_s:
            return False
        self._tried[preemptor] = now_s
        grace = self.of.setdefault(handle, Grace(now_s + grace_s, preemptor))
        return now_s < grace.until_s

    def over(self, now_s: int) -> list[int]:
        """The jobs whose grace is over."""
        return [handle for handle, grace in self.of.items() if grace.until_s <= now_s]

    def awaited_by(self, preemptor: int) -> bool:
        """Whether any jobs are leaving for this preemptor."""
        return any(grace.preemptor == preemptor for grace in self.of.values())

    def left(self, handle: int) -> None:
        """Note that a job has given its GPUs back."""
        self.of.pop(handle, None)

    def started(self, preemptor: int) -> None:
        """Note that a job has got its GPUs."""
        self._tried.pop(preemptor, None)
