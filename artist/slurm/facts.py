"""What a cluster file keeps of Slurm: partitions, QOS, accounts and their shares.

The policy `slurm` reads it.
"""

from __future__ import annotations

from pydantic import Field

from artist.io.documents import Document, NonNegative

QOS_LIMITS: tuple[str, ...] = (
    "GrpTRES", "GrpJobs", "GrpTRESRunMins", "MaxTRESPU", "MaxJobsPU", "MaxTRESPA", "MaxJobsPA",
)  # fmt: skip
ASSOC_LIMITS: tuple[str, ...] = ("GrpTRES", "GrpJobs", "GrpTRESRunMins", "MaxJobs")
"""The limits that the policy models: of a QOS, and of an account or a user."""
UNLIMITED = "none"
"""What lifts a limit that a user would have from the account."""


class SlurmMachines(Document):
    """Machines with the same CPUs and weight."""

    nodes: str = Field(description="their names, as a host list such as n[01-16]")
    cpus: int = Field(default=0, ge=0, description="CPUs of each; 0: unknown")
    weight: int = Field(default=1, ge=0, description="machines of lower weight are taken first")


class Partition(Document):
    """A set of machines with limits and priorities of its own."""

    name: str
    nodes: str = Field(
        description="names of machines, as a host list such as n[01-16]; empty: none has GPUs"
    )
    default: bool = Field(default=False, description="whether jobs go here unless they say where")
    max_time_s: NonNegative | None = Field(
        default=None, description="longest time limit; none: any"
    )
    max_nodes: int | None = Field(default=None, ge=0, description="machines of a job; none: any")
    priority_tier: int = Field(default=1, description="partitions of higher tiers go first")
    priority_job_factor: int = Field(default=1, description="for the priority of its jobs")
    preempt_mode: str = Field(default="OFF", description="what becomes of jobs that are preempted")
    grace_s: int = Field(default=0, ge=0, description="how long jobs that are preempted run on")
    qos: str = Field(default="", description="the QOS whose limits all its jobs have, too")
    billing: dict[str, float] = Field(
        default_factory=dict, description="TRESBillingWeights: how usage counts; none: CPUs"
    )


class Qos(Document):
    """A quality of service."""

    name: str
    priority: int = 0
    preempts: tuple[str, ...] = Field(default=(), description="QOS whose jobs it may preempt")
    preempt_mode: str = Field(default="cluster", description="cluster: as the cluster does")
    grace_s: int = Field(default=0, ge=0, description="how long jobs that are preempted run on")
    exempt_s: int | None = Field(
        default=None, ge=0, description="how long no job is preempted; none: as in the cluster"
    )
    limits: dict[str, str] = Field(
        default_factory=dict, description="as sacctmgr calls and prints them: GrpTRES, MaxJobsPU"
    )


class Account(Document):
    """An account: a team, and its users."""

    name: str
    parent: str | None = None
    shares: int | str = Field(default=1, description="among its siblings, or 'parent'")
    users: dict[str, int | str] = Field(default_factory=dict, description="shares of its users")
    limits: dict[str, str] = Field(default_factory=dict, description="as those of a QOS")
    user_limits: dict[str, dict[str, str]] = Field(
        default_factory=dict, description="limits of its users"
    )


class SlurmReservation(Document):
    """Machines that are kept for somebody, or for maintenance, for a while."""

    name: str
    nodes: str = Field(description="names of machines, as a host list")
    starts_at: str = Field(description="as Slurm prints it, 2026-11-23T16:13:34")
    ends_at: str = Field(description="the same")


class SlurmFacts(Document):
    """What `artist cluster import --slurm` has found."""

    machines: tuple[SlurmMachines, ...] = ()
    partitions: tuple[Partition, ...] = ()
    qos: tuple[Qos, ...] = ()
    accounts: tuple[Account, ...] = ()
    reservations: tuple[SlurmReservation, ...] = ()
    settings: dict[str, str] = Field(
        default_factory=dict, description="of scheduling and priority, as Slurm spells them"
    )
    not_understood: tuple[str, ...] = Field(
        default=(), description="what Slurm said that has no place here"
    )

    @property
    def gpu_partitions(self) -> dict[str, Partition]:
        """The partitions that have GPUs, by name."""
        return {x.name: x for x in self.partitions if x.nodes}

    @property
    def default_partition(self) -> str:
        """Where jobs that name no partition go: the default, or the first, of those with GPUs."""
        names = [x.name for x in self.gpu_partitions.values() if x.default]
        return next(iter([*names, *self.gpu_partitions]), "")
