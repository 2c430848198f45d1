"""A scheduler: its interface, and the bases that policies and wrappers extend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from artist.cluster.free_gpus import FreeGpus
from artist.contract.decisions import Decision
from artist.contract.views import ClusterView, JobView
from artist.io.documents import Document
from artist.units import Tick

CORE_TABLES = (
    "jobs", "placements", "timeline", "waits", "wait_causes", "links", "turns", "outages",
    "failure_sizes", "tenants", "tenant_use", "priorities", "gpu_kinds", "above_rate",
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
        `decide` is asked. A rate that changes asks no question.

        The answer False spares the question: the jobs keep their GPUs for another lease. Return
        False only if `decide` would return no decisions, and the policy's state is as it would be
        after `decide`.
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
    """Whether it keeps its own books of which job has which GPUs. Then no wrapper may give a job
    other GPUs than it does."""

    has_quotas = False
    """Whether it keeps to quotas. Then no other wrapper need do so."""

    head_blocks = False
    """Whether the first waiting job in the order of arrival keeps all other jobs waiting."""

    in_round = True
    """Whether it could place jobs when it was asked last. A policy in rounds cannot between."""

    reads_gpu_kinds = False
    """Whether it chooses among the kinds of GPUs that a job accepts (`Job.gpu_kinds`)."""

    obeys_gpu_kinds = False
    """Whether it gives jobs any GPUs of the kinds that they accept, and no others."""

    reads_hosts = False
    """Whether it places jobs only where machines have the cores and memory (`FreeGpus.hosts`)."""

    reads_shares = False
    """Whether it gives jobs that ask for a share of a GPU one beside others (`FreeGpus.fed`)."""

    jobs_per_gpu = 1
    """How many jobs it lets share a GPU (`Start.beside`), at most `MOST_JOBS_PER_GPU`."""

    def contests(self, ended: Sequence[JobView], free: FreeGpus, now: Tick) -> bool:
        """True. Override it to save questions (`Policy.contests`)."""
        return True

    def fewest_gpus(self, view: ClusterView, job: JobView) -> int:
        """On how few GPUs it would start a waiting job: as many as were submitted.

        What a quota is charged follows from it. A policy that shares GPUs out anew in rounds
        overrides it for elastic jobs. Other policies should not: they may start such a job on more,
        and it then keeps GPUs that others have a right to.
        """
        return job.job.gpus

    def tables(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """No extra tables."""
        return {}


class WrapperPolicy:
    """Base of a policy that takes another one inside and forwards what it does not change."""

    def __init__(self, host: Policy) -> None:
        self.host = host
        self.lease = host.lease
        self.remembers_placements = getattr(host, "remembers_placements", False)
        self.has_quotas = getattr(host, "has_quotas", False)
        self.head_blocks = getattr(host, "head_blocks", False)
        self.reads_gpu_kinds = getattr(host, "reads_gpu_kinds", False)
        self.obeys_gpu_kinds = getattr(host, "obeys_gpu_kinds", False)

    @property
    def in_round(self) -> bool:
        """Whether the policy inside could place jobs when it was asked last."""
        return bool(getattr(self.host, "in_round", True))

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

    def fewest_gpus(self, view: ClusterView, job: JobView) -> int:
        """What the policy inside says, or else as many as were submitted."""
        asked = getattr(self.host, "fewest_gpus", None)
        return job.job.gpus if asked is None else int(asked(view, job))

    def tables(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """The tables of the policy inside."""
        return self.host.tables()


def policy_name(policy: Policy) -> str:
    """What messages call a policy: its class, unless it says otherwise."""
    return str(getattr(policy, "called", type(policy).__name__))
