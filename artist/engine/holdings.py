"""Who holds which GPU: jobs that wait, jobs that run, free GPUs and GPUs out of service.

At every instant, for every leaf of the cluster tree,

    free + held + withdrawn = all GPUs of the leaf

The GPUs of one leaf are alike, so a job holds a number of them (`Placement`). Jobs that share GPUs
all hold the same GPUs (`JobState.beside`). These count once, and are free when the last of the jobs
has left. `shared_holdings.py` is for jobs that ask for shares of a GPU. `outages.py` moves GPUs out
of service and back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.host_resources import FreeHosts
from artist.cluster.tree import ClusterTree
from artist.cluster.visiting_order import VisitingOrder
from artist.engine.job_state import JobState
from artist.errors import PolicyError
from artist.units import Tick
from artist.workload.job import Job

if TYPE_CHECKING:
    from artist.engine.answers import CheckedAnswer


class Holdings:
    """The jobs in the system, and the GPUs of the cluster by who has them."""

    __slots__ = (
        "_gpus", "arrives", "free", "jobs", "kept_out", "on_notice", "running", "sharing", "tree",
        "waiting", "withdrawn",
    )  # fmt: skip

    gpu_parts: ClassVar = 1
    """How many parts of a GPU `gpus_held` counts as one GPU."""

    def __init__(
        self, tree: ClusterTree, jobs: Sequence[Job], visiting_order: VisitingOrder | None
    ) -> None:
        self.tree = tree
        self.jobs = jobs
        self._gpus = tree.gpus
        self.arrives: Callable[[Job, int, Tick], JobState] = JobState
        """Makes the state of an arriving job from the job, its handle and the tick."""
        self.free = FreeGpus(tree, visiting_order)
        self.free.hosts = FreeHosts.that_matter(tree, jobs)
        self.waiting: dict[int, JobState] = {}
        """Waiting jobs by handle, in the order in which they entered the queue."""
        self.running: dict[int, JobState] = {}
        """Running jobs by handle."""
        self.withdrawn: dict[int, int] = {}
        """GPUs out of service by leaf; a leaf without any is missing."""
        self.on_notice: dict[int, Tick] = {}
        """Leaves that will leave service, and when."""
        self.kept_out: dict[int, int] = {}
        """By leaf, the part of `withdrawn` that only a notice keeps out (`outages.py`)."""
        self.sharing: dict[int, None] = {}
        """Handles of the running jobs that hold a share of a GPU."""

    def join(self, state: JobState, host: JobState) -> None:
        """Let a job share the GPUs of another job from now on, and of the jobs beside that one."""
        there = sorted((host.handle, *host.beside))
        state.beside = tuple(there)
        for handle in there:
            other = self.running[handle]
            other.beside = tuple(sorted((*other.beside, state.handle)))

    def part(self, state: JobState) -> None:
        """Let the other jobs on a job's GPUs hold them without it from now on."""
        for handle in state.beside:
            other = self.running[handle]
            other.beside = tuple(x for x in other.beside if x != state.handle)
        state.beside = ()

    @property
    def gpus_held(self) -> int:
        """GPUs that jobs hold, in units of 1 / `gpu_parts`."""
        held = self._gpus - self.free.total
        return held - sum(self.withdrawn.values()) if self.withdrawn else held

    def exchange(self, answer: CheckedAnswer) -> None:
        """Release the GPUs that an answer takes from jobs, then claim those that it gives to jobs.

        Raises:
            PolicyError: a GPU to be claimed is not free, or its machine lacks CPU cores or memory
                for the job. No GPU has changed hands then.
        """
        free, leaving = self.free, [*answer.preempted, *answer.moved]
        for state in leaving:
            if state.beside:
                leaving = _releasing(leaving)
                break
        released = [(state.placement, state.job) for state in leaving if state.placement]
        for placement, job in released:
            free.release(placement, job)
        placed = answer.placed
        if answer.beside:
            placed = [(state, at) for state, at in placed if state.handle not in answer.beside]
        for index, (state, placement) in enumerate(placed):
            try:
                free.claim(placement, state.job)
            except PolicyError as cause:
                for other, claimed in placed[:index]:
                    free.release(claimed, other.job)
                for held, job in released:
                    free.claim(held, job)
                raise PolicyError(f"job {state.job.id!r}: {cause}") from None

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
        """The name of a job in messages. The job may not exist."""
        known = handle in range(len(self.jobs))
        return f"job {self.jobs[handle].id!r}" if known else f"unknown job {handle!r}"

    def _among(self, jobs: Mapping[int, JobState], handle: int, condition: str) -> JobState:
        job = jobs.get(handle)
        if job is None:
            raise PolicyError(f"{self.name(handle)} is not {condition}")
        return job


def _releasing(leaving: Sequence[JobState]) -> list[JobState]:
    """The leaving jobs that release their GPUs.

    Of jobs that share GPUs it is the one with the least handle, and none if another job stays
    there.
    """
    handles = {state.handle for state in leaving}
    return [
        state for state in leaving if all(x in handles and state.handle < x for x in state.beside)
    ]
