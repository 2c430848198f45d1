"""A training job as its user submitted it. All parts of artist share this definition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from artist.units import CORE_MILLI, GIB_MIB, GPU_MILLI
from artist.workload.goodput import Goodput

LOWEST_PRIORITY = 7
"""Priorities are 1 (highest) to 7 (MAST, section 4.2: seven priority levels)."""

UNKNOWN_MODEL = "unknown"
"""The model of a job for which the trace has none."""

# Stands for "not given": `Job.__post_init__` replaces it with the job's own `gpus`.
_AS_GPUS: Any = None


@dataclass(frozen=True, slots=True)
class Job:
    """One job of a trace. The readers of traces check its values, the engine does not.

    All times are seconds. A job runs `iterations` synchronous steps on `gpus` GPUs. `compute_s`
    is the compute time of one step, without communication. It is 0 only in a trace that leaves it
    to the catalogue of models; a run fills it in before it begins
    (`artist/trace/compute_times.py`). An elastic job may run on any number of GPUs from `gpus_min`
    to `gpus_max`; both default to `gpus`.
    """

    id: str
    arrival_s: float
    gpus: int
    model: str
    iterations: int
    compute_s: float
    user: str = ""
    gpus_min: int = _AS_GPUS
    gpus_max: int = _AS_GPUS
    # Time to save and restore the job when it restarts after a preemption or a migration. The
    # default is 0, because Dally, section IV-B, calls it negligible.
    restart_s: float = 0.0
    # The columns hint_* of a trace, by their full name. Only policies read them.
    hints: Mapping[str, object] = field(default_factory=dict, hash=False)
    # How much work the job does between two checkpoints, and how long it stands still to write one.
    # None: as the scenario says.
    checkpoint_interval_s: float | None = None
    checkpoint_cost_s: float | None = None
    # The team that the job counts for, and its urgency from 1 (highest) to 7; None: not given.
    # MAST, section 4.2: workloads without a priority are treated as the lowest.
    tenant: str | None = None
    priority: int | None = None
    # What the job reads: tables, or partitions of tables as TABLE/PARTITION (artist/data).
    tables: tuple[str, ...] = ()
    # The kinds of GPUs that it accepts (`Unit.kind` of a cluster file), the best one first; empty:
    # all kinds.
    gpu_kinds: tuple[str, ...] = ()
    # Thousandths of CPU cores and MiB of memory that the job needs, over all of its machines; 0:
    # not given. Each GPU takes an equal share from its own machine
    # (`artist/cluster/host_resources.py`).
    cpu_milli: int = 0
    memory_mib: int = 0
    # Thousandths of a GPU that a job of one GPU holds. All times are those on its share
    # (`artist/cluster/gpu_shares.py`).
    gpu_milli: int = GPU_MILLI
    # MiB that it needs of the memory of each of its GPUs; 0: not given.
    gpu_memory_mib: int = 0
    # The MIG instance that it asks for, as in 3g.40gb; empty: none. `gpu_milli` is the instance's,
    # and all times are those on it (`artist/cluster/mig.py`).
    mig: str = ""
    # GPUs of a tensor-parallel group, which should lie in one machine; part of the model's name
    # in a trace.
    tensor: int = 1
    # How fast it makes progress with any batch on any GPUs; None: the batch never changes, and
    # compute speed is proportional to the number of GPUs (`artist/estimates/goodput_table.py`).
    goodput: Goodput | None = None
    # What its first start costs, such as pulling containers. The default is 0, because there is no
    # state to restore; Pollux' and Sia's programs charge a restart here too.
    first_start_s: float = 0.0
    # The request as one number, which `FreeGpus.room` is compared with: the GPUs that it asks for,
    # or, for a share of a GPU, the share minus 1 in thousandths, which is negative.
    demand: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.gpus_min is _AS_GPUS:
            object.__setattr__(self, "gpus_min", self.gpus)
        if self.gpus_max is _AS_GPUS:
            object.__setattr__(self, "gpus_max", self.gpus)
        short = self.gpu_milli - GPU_MILLI
        object.__setattr__(self, "demand", short or self.gpus)

    @property
    def cpu_cores(self) -> float | None:
        """CPU cores that it needs in all; None if it does not say."""
        return self.cpu_milli / CORE_MILLI or None

    @property
    def memory_gib(self) -> float | None:
        """Memory of its machines that it needs in all, in GiB; None if it does not say."""
        return self.memory_mib / GIB_MIB or None

    @property
    def is_share(self) -> bool:
        """Whether it asks for a share of a GPU, not for whole ones."""
        return self.gpu_milli < GPU_MILLI

    @property
    def gpu_share(self) -> float | None:
        """Share of its GPU that it asks for; None if it asks for whole GPUs."""
        return self.gpu_milli / GPU_MILLI if self.is_share else None

    @property
    def gpu_memory_gib(self) -> float | None:
        """Memory of each of its GPUs that it needs, in GiB; None if it does not say."""
        return self.gpu_memory_mib / GIB_MIB or None

    @property
    def ideal_s(self) -> float:
        """Run time without waiting or communication, in seconds."""
        return self.iterations * self.compute_s


def is_ranged(job: Job) -> bool:
    """Whether a job may run on other numbers of GPUs than it wants."""
    return not job.gpus_min == job.gpus == job.gpus_max


def start_cost_s(job: Job, *, again: bool) -> float:
    """Seconds for which a job stands still when it gets GPUs, for the first time or again."""
    return job.restart_s if again else job.first_start_s
