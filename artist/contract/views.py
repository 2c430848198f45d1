"""What policies and rate functions see: jobs, data, and the cluster at a question."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Protocol

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement
from artist.cluster.tree import ClusterTree
from artist.contract.decisions import Decision, Turn
from artist.contract.links import SharedLinks
from artist.errors import InvariantError
from artist.units import Tick
from artist.workload.goodput import Batch
from artist.workload.job import Job

if TYPE_CHECKING:
    from artist.contract.policy import Policy
    from artist.contract.rates import Rate


class JobView(Protocol):
    """What a policy or rate function may know of a job that has arrived.

    A policy sees jobs that have not finished. A rate function also sees jobs that finish now.
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
        """When it got its present GPUs. Meaningless for a waiting job."""

    @property
    def placement(self) -> Placement | None:
        """Its GPUs; None while it waits."""

    @property
    def former_placement(self) -> Placement | None:
        """The GPUs of its previous stay, or of its last one if it waits; None if there is none."""

    @property
    def beside(self) -> tuple[int, ...]:
        """Handles of the other jobs that hold the same GPUs, ascending."""

    @property
    def gpus(self) -> int:
        """How many GPUs it holds; 0 while it waits."""

    @property
    def tier(self) -> int:
        """Index of the outermost level that its placement spans; -1 while it waits."""

    def run_ticks(self, now: Tick) -> Tick:
        """Ticks for which it has held GPUs."""

    def service_gpu_ticks(self, now: Tick) -> int:
        """Attained service: GPUs x ticks held, exactly. Shared GPUs count by the job's share,
        rounded down to a GPU-tick."""

    def service_gpu_s(self, now: Tick) -> float:
        """Attained service in GPU-seconds, rounded. For comparisons take `service_gpu_ticks`."""

    def iterations_done(self, now: Tick) -> int:
        """Whole iterations completed."""

    def phase(self, now: Tick) -> float:
        """The part of the iteration in progress that is done, from 0 to below 1."""

    @property
    def rate(self) -> Rate | None:
        """How fast it has run since the last question; None while it waits."""

    @property
    def finish(self) -> Tick:
        """When it would finish at its present rate. No real scheduler knows this. Meaningless for
        a waiting job."""

    @property
    def productive_from(self) -> Tick:
        """When its last restart or hold ends. Until then it stands still."""

    @property
    def batch(self) -> Batch | None:
        """The batch that a policy has set for its present GPUs; None: as submitted."""

    @property
    def turn(self) -> Turn | None:
        """When its iterations are to start, if it takes turns with others."""


class DataView(Protocol):
    """Which tables are where. Regions are units of the level `region`."""

    @property
    def copied(self) -> bool:
        """Whether tables are copied to regions that lack them (`Fetch`)."""

    def regions_holding(self, job: Job) -> tuple[int, ...]:
        """The regions that hold every table of a job, ascending; all if it names no table."""
        ...

    def missing_bytes(self, job: Job, region: int) -> int:
        """Bytes of the job's tables that a region does not hold yet."""
        ...

    def has_room_for(self, job: Job, region: int) -> bool:
        """Whether a region can store the tables of the job that it lacks."""
        ...


class WhatIf(Protocol):
    """Tries an answer on a copy of the run in which no job arrives any more and nothing fails."""

    def __call__(
        self, answer: Sequence[Decision], policy: Policy, hidden: Collection[int] = ()
    ) -> Mapping[int, Tick]:
        """When each job in the system would finish, by handle.

        The copy gets the answer, and from then on asks a copy of `policy`. Neither the run nor the
        policy changes. `hidden` are waiting jobs that the copy is without: a wrapper names the jobs
        that it does not show to the policy.

        Raises:
            PolicyError: the answer is invalid, or jobs are left waiting at the end.
        """
        ...


def nothing_to_try(
    answer: Sequence[Decision], policy: Policy, hidden: Collection[int] = ()
) -> Mapping[int, Tick]:
    """`ClusterView.what_if` of a view that was made by hand, without a run.

    Raises:
        InvariantError: always.
    """
    raise InvariantError("this view belongs to no run, so nothing can be tried")


def as_if_alone(job: Job, placement: Placement, others: Sequence[Job]) -> float:
    """`ClusterView.slowdown` in a run that has no speeds of jobs that share GPUs: always 1."""
    return 1.0


NOBODY_ON_NOTICE: Mapping[int, Tick] = MappingProxyType({})


class ClusterView(NamedTuple):
    """The state of the cluster at a question; valid until the question is answered."""

    now: Tick
    free: FreeGpus
    """The free GPUs, read-only. Take a `copy()` to try placements on."""
    waiting: Mapping[int, JobView]
    """Waiting jobs by handle, in the order in which they entered the queue."""
    running: Mapping[int, JobView]
    """Running jobs by handle."""
    entered: Sequence[JobView]
    """Jobs that entered the queue since the last question: they arrived or lost their GPUs."""
    lease_ended: Sequence[JobView]
    """Running jobs whose lease ends now. A job that is neither preempted nor migrated keeps its
    GPUs for another lease, at no cost."""
    finished: Sequence[int]
    """Handles of the jobs that finished or were cancelled since the last question."""
    alone: Callable[[Job, Placement], Rate]
    """The rate of a job on some GPUs by the estimate, without other jobs (`RateFunction.alone`)."""
    links: SharedLinks
    """How busy links are, and what a job would lose on them (`RateFunction.links`)."""
    what_if: WhatIf = nothing_to_try
    """When jobs would finish after an answer, if no other job arrived. Each call simulates them."""
    data: DataView | None = None
    """Which tables are where; None in a run without data (`artist/data`)."""
    on_notice: Mapping[int, Tick] = NOBODY_ON_NOTICE
    """Leaves that will leave service, and when. Jobs there may stay until then, or leave. None of
    these GPUs is free or becomes free, so no job may start there or move there."""

    kept: Collection[int] = ()
    """Handles of running jobs that keep their GPUs at this question: jobs that ask for shares of
    GPUs, and jobs that a wrapper names."""
    slowdown: Callable[[Job, Placement, Sequence[Job]], float] = as_if_alone
    """How many times longer an iteration of a job takes on some GPUs beside other jobs there. It
    matters if the policy lets jobs share GPUs (`jobs_per_gpu`)."""

    @property
    def cluster(self) -> ClusterTree:
        """The cluster's tree of levels."""
        return self.free.tree

    def comm_share(self, job: Job, placement: Placement) -> float:
        """The share of an iteration in which a job would only communicate, on some GPUs.

        It is from 0 to below 1, by the estimate of `alone` (Dally, section IV-C: communication that
        computing does not hide). Estimates are remembered, so asking is cheap.
        """
        rate = self.alone(job, placement)
        # If nothing is sent, the two differ by rounding only.
        return max(0.0, 1.0 - job.compute_s * rate.compute_scale / rate.iteration_s)

    def frees(self, job: JobView) -> bool:
        """Whether other jobs could get the GPUs of a running job.

        They could if the job is not in `kept` and none of its GPUs is on notice.
        """
        if job.handle in self.kept:
            return False
        return not self.on_notice or self.leaves_free(job)

    def leaves_free(self, job: JobView) -> bool:
        """Whether the GPUs of a running job are free once it leaves: none of them is on notice."""
        if not self.on_notice or job.placement is None:
            return True
        return not any(leaf in self.on_notice for leaf in job.placement.leaves)
