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
"""The names of a run's own tables. A policy may give no table of these names."""


class Policy(Protocol):
    """A scheduler. State that it keeps must survive pickling and deep copies.

    It is made from its options, and a wrapper also from its host. If the constructor has a
    parameter `draws`, it gets the run's random numbers (`artist.rng.Draws`), the only source of
    randomness that a policy may use.
    """

    lease: Tick | None
    """Ticks for which a job keeps its GPUs before it competes again; None: forever. The simulator
    reads it once, at the start."""

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        """Answer one question."""
        ...

    def contests(self, ended: Sequence[JobView], free: FreeGpus, now: Tick) -> bool:
        """Whether ended leases need a decision, at an instant without another reason to ask.

        If a job arrives, finishes or was preempted, or a wake-up is due, `decide` is asked
        directly. A change of a rate does not cause a question.

        False skips the question, and the jobs keep their GPUs for another lease. Return False only
        if `decide` would return no decisions, and if the policy's state is as it would be after
        `decide`.
        """
        ...

    def tables(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """Extra result tables by name, written to NAME.parquet when all jobs have finished.

        A table is a list of rows: dicts with equal keys. Names of `CORE_TABLES` are not allowed.
        """
        ...


class Options(Document):
    """Base of a policy's options. Every field has help text and a default with its source."""


class BasePolicy:
    """What most policies share: no lease, every end of a lease is a question, no extra tables."""

    lease: Tick | None = None
    remembers_placements = False
    """Whether the policy records itself which job has which GPUs. Then no wrapper may give a job
    other GPUs than the policy does."""

    has_quotas = False
    """Whether the policy enforces quotas, so that no wrapper need do so."""

    head_blocks = False
    """Whether the first waiting job in the order of arrival keeps all other jobs waiting."""

    in_round = True
    """Whether the policy could place jobs when it was last asked. A policy in rounds cannot do so
    between rounds."""

    reads_gpu_kinds = False
    """Whether the policy chooses among the kinds of GPUs that a job accepts (`Job.gpu_kinds`)."""

    obeys_gpu_kinds = False
    """Whether the policy gives jobs any GPUs of the kinds that they accept, and no others."""

    reads_hosts = False
    """Whether the policy places jobs only on machines with enough free CPU cores and memory
    (`FreeGpus.hosts`)."""

    reads_shares = False
    """Whether the policy gives a job that asks for a share of a GPU a GPU that other jobs share
    (`FreeGpus.fed`)."""

    jobs_per_gpu = 1
    """How many jobs the policy lets share a GPU (`Start.beside`), at most `MOST_JOBS_PER_GPU`."""

    def contests(self, ended: Sequence[JobView], free: FreeGpus, now: Tick) -> bool:
        """True. Override it to save questions (`Policy.contests`)."""
        return True

    def fewest_gpus(self, view: ClusterView, job: JobView) -> int:
        """The fewest GPUs on which it would start a waiting job: as many as were submitted.

        Quotas are charged this number. A policy that redistributes GPUs in rounds overrides it for
        elastic jobs. Other policies should not: if they start such a job on more GPUs, the job
        keeps GPUs that others are entitled to.
        """
        return job.job.gpus

    def tables(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """No extra tables."""
        return {}


class WrapperPolicy:
    """Base of a policy around another one, its host. It forwards what it does not change."""

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
        """Whether the host could place jobs when it was last asked."""
        return bool(getattr(self.host, "in_round", True))

    @property
    def called(self) -> str:
        """The policy's name in messages."""
        return type(self).__name__

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        """The answer of the host."""
        return self.host.decide(view)

    def contests(self, ended: Sequence[JobView], free: FreeGpus, now: Tick) -> bool:
        """What the host says."""
        return self.host.contests(ended, free, now)

    def fewest_gpus(self, view: ClusterView, job: JobView) -> int:
        """What the host says, or else as many as were submitted."""
        asked = getattr(self.host, "fewest_gpus", None)
        return job.job.gpus if asked is None else int(asked(view, job))

    def tables(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """The tables of the host."""
        return self.host.tables()


def policy_name(policy: Policy) -> str:
    """The name of a policy in messages: its `called`, or else its class."""
    return str(getattr(policy, "called", type(policy).__name__))
