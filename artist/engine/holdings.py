"""Who holds which GPU: jobs that wait, jobs that run, free GPUs and GPUs out of service.

At every instant, for every leaf of the cluster tree,

    free + held + withdrawn = all GPUs of the leaf

The GPUs of one leaf are alike, so a job holds a number of them (`Placement`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement
from artist.cluster.tree import ClusterTree
from artist.cluster.visiting_order import VisitingOrder
from artist.engine.job_state import JobState
from artist.errors import InvariantError, PolicyError
from artist.workload.job import Job


class Holdings:
    """The jobs in the system, and the GPUs of the cluster by who has them."""

    __slots__ = ("free", "jobs", "running", "tree", "waiting", "withdrawn")

    def __init__(
        self, tree: ClusterTree, jobs: Sequence[Job], visiting_order: VisitingOrder | None
    ) -> None:
        self.tree = tree
        self.jobs = jobs
        self.free = FreeGpus(tree, visiting_order)
        self.waiting: dict[int, JobState] = {}
        """By handle, in the order in which they entered the queue."""
        self.running: dict[int, JobState] = {}
        """By handle."""
        self.withdrawn: dict[int, int] = {}
        """GPUs out of service by leaf; a leaf without any is missing."""

    @property
    def gpus_held(self) -> int:
        """GPUs that some job holds."""
        return self.tree.gpus - self.free.total - sum(self.withdrawn.values())

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

    def _among(self, jobs: Mapping[int, JobState], handle: int, state: str) -> JobState:
        job = jobs.get(handle)
        if job is None:
            raise PolicyError(f"{self.name(handle)} is not {state}")
        return job

    # -- GPUs out of service -----------------------------------------------------------

    def victims(self, placement: Placement) -> list[JobState]:
        """The jobs that lose their GPUs when these GPUs are withdrawn, latest arrival first.

        Free GPUs of a leaf go first. A job counts where its GPUs are needed on some leaf after
        those of later arrivals.

        Raises:
            InvariantError: the leaf does not exist or has fewer GPUs in service.
        """
        missing: dict[int, int] = {}
        for leaf, count in zip(placement.leaves, placement.counts, strict=True):
            if not 0 <= leaf < len(self.tree.levels[0]) or count < 1 or count > self._served(leaf):
                raise InvariantError(
                    f"{count} GPUs of {self.tree.levels[0].name} {leaf} withdrawn, but "
                    f"{self._served(leaf)} are in service there"
                )
            missing[leaf] = count - self.free.leaves[leaf]
        victims = []
        for _, state in sorted(self.running.items(), reverse=True):
            assert state.placement is not None  # running jobs have GPUs
            shares = dict(zip(state.placement.leaves, state.placement.counts, strict=True))
            if any(missing.get(leaf, 0) > 0 for leaf in shares):
                victims.append(state)
                for leaf, count in shares.items():
                    if leaf in missing:
                        missing[leaf] -= count
        return victims

    def withdraw(self, placement: Placement) -> None:
        """Take free GPUs out of service."""
        self.free.claim(placement)
        for leaf, count in zip(placement.leaves, placement.counts, strict=True):
            self.withdrawn[leaf] = self.withdrawn.get(leaf, 0) + count

    def restore(self, placement: Placement) -> None:
        """Bring withdrawn GPUs back: they are free from now on.

        Raises:
            InvariantError: fewer GPUs of a leaf are out of service; nothing has changed then.
        """
        for leaf, count in zip(placement.leaves, placement.counts, strict=True):
            if not 1 <= count <= self.withdrawn.get(leaf, 0):
                raise InvariantError(
                    f"{count} GPUs of {self.tree.levels[0].name} {leaf} restored, but "
                    f"{self.withdrawn.get(leaf, 0)} are out of service there"
                )
        for leaf, count in zip(placement.leaves, placement.counts, strict=True):
            self.withdrawn[leaf] -= count
            if not self.withdrawn[leaf]:
                del self.withdrawn[leaf]
        self.free.release(placement)

    def _served(self, leaf: int) -> int:
        if not 0 <= leaf < len(self.tree.levels[0]):
            return 0
        return self.tree.levels[0].gpus[leaf] - self.withdrawn.get(leaf, 0)
