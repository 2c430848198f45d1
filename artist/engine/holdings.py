"""Who holds which GPU: jobs that wait, jobs that run, free GPUs and GPUs out of service.

At every instant, for every leaf of the cluster tree,

    free + held + withdrawn = all GPUs of the leaf

The GPUs of one leaf are alike, so a job holds a number of them (`Placement`). Jobs that share GPUs
hold the same ones, all of them (`JobState.beside`); these count once, and are free once the last of
the jobs has left. So do jobs that ask for shares of a GPU: each holds its share, and of a GPU

    idle + sum of the shares held = 1        (in thousandths, `FreeGpus.shares`)

`outages.py` moves GPUs out of service and back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.host_resources import FreeHosts
from artist.cluster.tree import ClusterTree
from artist.cluster.visiting_order import VisitingOrder
from artist.engine.job_state import JobState
from artist.errors import PolicyError
from artist.units import GPU_MILLI, Tick
from artist.workload.job import Job


class Holdings:
    """The jobs in the system, and the GPUs of the cluster by who has them."""

    __slots__ = (
        "_gpus", "_handles", "free", "jobs", "kept_out", "on_notice", "running", "sharing", "tree",
        "waiting", "withdrawn",
    )  # fmt: skip

    def __init__(
        self, tree: ClusterTree, jobs: Sequence[Job], visiting_order: VisitingOrder | None
    ) -> None:
        self.tree = tree
        self.jobs = jobs
        self._gpus = tree.gpus
        self.free = FreeGpus(tree, visiting_order)
        if tree.hosts is not None and any(
            job.cpu_milli or job.memory_mib or job.gpu_memory_mib or job.mig for job in jobs
        ):
            self.free.hosts = FreeHosts.of_idle(tree)
        self.waiting: dict[int, JobState] = {}
        """By handle, in the order in which they entered the queue."""
        self.running: dict[int, JobState] = {}
        """By handle."""
        self.withdrawn: dict[int, int] = {}
        """GPUs out of service by leaf; a leaf without any is missing."""
        self.on_notice: dict[int, Tick] = {}
        """Leaves that will leave service, and when."""
        self.kept_out: dict[int, int] = {}
        """Of the withdrawn GPUs those that only a notice keeps out, by leaf (`notices.py`)."""
        self.sharing: dict[int, None] = {}
        """Handles of the running jobs that hold a share of a GPU."""
        self._handles: dict[str, int] = {}
        if any(job.gpu_milli < GPU_MILLI for job in jobs):
            self.free.share(self.on_notice)
            self._handles = {job.id: handle for handle, job in enumerate(jobs)}

    def others(self, state: JobState) -> list[int]:
        """Handles of the jobs on the GPU of which a job holds a share."""
        assert self.free.shares is not None
        return [self._handles[name] for name in self.free.shares.beside(state.job)]

    def handle(self, name: str) -> int:
        """The handle of a job, in a run in which jobs ask for shares."""
        return self._handles[name]

    def join(self, state: JobState, host: JobState) -> None:
        """From now on a job shares the GPUs of another one and of those beside it."""
        there = sorted((host.handle, *host.beside))
        state.beside = tuple(there)
        for handle in there:
            other = self.running[handle]
            other.beside = tuple(sorted((*other.beside, state.handle)))

    def part(self, state: JobState) -> None:
        """From now on the others on a job's GPUs hold them without it."""
        for handle in state.beside:
            other = self.running[handle]
            other.beside = tuple(x for x in other.beside if x != state.handle)
        state.beside = ()

    @property
    def gpus_held(self) -> int:
        """GPUs that some job holds; in thousandths where jobs hold shares (`gpu_parts`)."""
        held = self._gpus - self.free.total
        if self.withdrawn:
            held -= sum(self.withdrawn.values())
        shares = self.free.shares
        return held if shares is None else held * GPU_MILLI - shares.idle

    @property
    def gpu_parts(self) -> int:
        """In what parts of a GPU `gpus_held` counts."""
        return 1 if self.free.shares is None else GPU_MILLI

    def waiting_job(self, handle: int) -> JobState:
        """A waiting job.

        Raises:
            PolicyError: the job does not wait.
        """
        return self._among(self.waiting, handle, "waiting")

    def running_job(self, handle: int) -> JobState:
        """A running job.

        Raises:
            PolicyError: the job does not run.
        """
        return self._among(self.running, handle, "running")

    def name(self, handle: int) -> str:
        """How a message calls a job, which may not exist."""
        known = handle in range(len(self.jobs))
        return f"job {self.jobs[handle].id!r}" if known else f"unknown job {handle!r}"

    def _among(self, jobs: Mapping[int, JobState], handle: int, condition: str) -> JobState:
        job = jobs.get(handle)
        if job is None:
            raise PolicyError(f"{self.name(handle)} is not {condition}")
        return job
