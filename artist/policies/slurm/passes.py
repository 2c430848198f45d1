"""One pass of Slurm's schedulers: its state, and the decisions that it collects."""

from __future__ import annotations

from collections.abc import Mapping

from artist.cluster.free_gpus import FreeGpus
from artist.contract import ClusterView, Decision, Preempt, Start
from artist.policies.slurm.backfill import Departures
from artist.policies.slurm.machines import Machines
from artist.policies.slurm.request import Request
from artist.policies.slurm.running import Running, RunningJob, machines_of
from artist.policies.slurm.selection import shares


class SchedulingPass:
    """The state of a pass: free GPUs, running jobs by expected end, and the jobs that it starts.

    It updates `running` as it starts and preempts jobs.
    """

    def __init__(self, view: ClusterView, machines: Machines, running: Running, now_s: int) -> None:
        self.now_s = now_s
        self.free_by_leaf, self._machines = view.free, machines
        self._copied = False
        self._running = running
        running.see(view.free)
        self.free, self.running = running.free, running.by_end
        self.by_number = running.by_number
        self.started: dict[int, Request] = {}
        """By handle, in the partition in which the job started."""
        self.victims: dict[int, Preempt] = {}
        self.preempted: list[RunningJob] = []
        self.reasons: dict[int, str] = {}
        self._departures: Departures | None = None
        self._view = view
        self._starts: list[Start] = []

    @property
    def departures(self) -> Departures:
        """The running jobs in the order of their expected ends, and what they leave free."""
        if self._departures is None:
            self._departures = Departures(self.free, self.running)
        return self._departures

    def start(self, request: Request, chosen: int) -> None:
        """Start a job on some machines."""
        self._departures = None
        taken = shares(request, self.free, chosen)
        placement = self._machines.placement(self._own_free(), taken)
        self._own_free().claim(placement)
        held = tuple((index, gpus, request.cpus) for index, gpus in taken)
        end_s = self.now_s + request.limit_s
        number, _ = request.number
        job = RunningJob(request.handle, number, self.now_s, end_s, machines_of(held), held)
        self._running.start(job, request)
        self.started[request.handle] = request
        self._starts.append(Start(request.handle, placement))

    def _own_free(self) -> FreeGpus:
        """The free GPUs by leaf; those of the view until the first change."""
        if not self._copied:
            self.free_by_leaf, self._copied = self.free_by_leaf.copy(), True
        return self.free_by_leaf

    def preemptable(self) -> list[RunningJob]:
        """Jobs that ran before this pass, and whose GPUs would become free."""
        there = self._view.running
        return [x for x in self.running if x.handle in there and self._view.frees(there[x.handle])]

    def tell_to_leave(self, victim: RunningJob, until_s: int) -> None:
        """Expect a job to end when its grace does."""
        if until_s < victim.end_s:
            self._departures = None
            self._running.expect(victim.handle, until_s)

    def preempt(self, victim: RunningJob, decision: Preempt) -> None:
        """Take a job's GPUs away."""
        placement = self._view.running[victim.handle].placement
        assert placement is not None  # it runs
        self._departures = None
        self._own_free().release(placement)
        self.preempted.append(self._running.leave(victim.handle))
        self.victims[victim.handle] = decision

    def decisions(self) -> list[Decision]:
        """The preemptions and starts of the pass."""
        return [*self.victims.values(), *self._starts]

    def busy_until(self, end_s: int) -> int:
        """When the GPUs of a job with this expected end become free: later than now."""
        return end_s if end_s > self.now_s else self.now_s + 1


class Tried:
    """Counts the jobs that backfill has tried in a pass, by user, partition and association."""

    _LIMITS = ("bf_max_job_user", "bf_max_job_part", "bf_max_job_assoc")

    def __init__(self, numbers: Mapping[str, int]) -> None:
        self._limits = {name: numbers[name] for name in self._LIMITS if numbers[name]}
        self._counts: dict[tuple[str, object], int] = {}

    def permits(self, request: Request) -> bool:
        """Whether this job may be tried too; if so, count it."""
        keys: dict[str, object] = {
            "bf_max_job_user": request.association[1],
            "bf_max_job_part": request.partition.name,
            "bf_max_job_assoc": request.association,
        }
        for name, limit in self._limits.items():
            if self._counts.get((name, keys[name]), 0) >= limit:
                return False
        for name in self._limits:
            self._counts[name, keys[name]] = self._counts.get((name, keys[name]), 0) + 1
        return True
