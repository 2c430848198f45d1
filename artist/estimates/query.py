"""Query and estimate: what a latency backend is asked, and what it answers.

A `LatencyQuery` holds everything that ASTRA-sim can distinguish and nothing else: no job, no
machine. An `Estimate` holds the compute time and the finish time of the iterations, the source of
these numbers and, on request, the traffic. Times in this package are nanoseconds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from artist.estimates.iteration_split import IterationSplit
    from artist.workload.layers import Workload


class Topology(StrEnum):
    """Basic topologies of ASTRA-sim's analytical network."""

    RING = "Ring"
    FULLY_CONNECTED = "FullyConnected"
    SWITCH = "Switch"


@dataclass(frozen=True, slots=True)
class Dimension:
    """One network dimension. A query lists its dimensions as ASTRA-sim does, innermost first.

    `bandwidth_gib_per_s` is per NPU and direction, `latency_ns` per hop. `level` names the level of
    the cluster that the dimension stands for; it is empty if a query was built by hand.
    """

    topology: Topology
    npus: int
    bandwidth_gib_per_s: float
    latency_ns: float
    level: str = ""


@dataclass(frozen=True, slots=True)
class SystemSettings:
    """Settings of ASTRA-sim's system layer. The four tuples hold one algorithm per dimension.

    The names of algorithms are ASTRA-sim's: ring, direct, directW (e.g. direct2), halvingDoubling,
    doubleBinaryTree, oneRing, oneDirect, oneHalvingDoubling.
    """

    all_reduce: tuple[str, ...]
    all_gather: tuple[str, ...]
    reduce_scatter: tuple[str, ...]
    all_to_all: tuple[str, ...]
    scheduling_policy: str = "LIFO"
    collective_optimization: str = "localBWAware"
    preferred_dataset_splits: int = 4
    active_chunks_per_dimension: int = 1
    endpoint_delay_ns: int = 10
    local_mem_bandwidth_gb_per_s: float = 1600.0
    queues_per_dimension: int = 1


@dataclass(frozen=True, slots=True)
class LatencyQuery:
    """What a backend is asked: `passes` iterations of a workload on these dimensions.

    The workload's compute times must be whole microseconds, except those of a STAGED one.

    With `flat_groups`, the groups of a divided job are ASTRA-sim's communicators
    (`flat_groups.py`); else they are cut out of the dimensions.
    """

    workload: Workload
    dimensions: tuple[Dimension, ...]
    system: SystemSettings
    passes: int = 1
    flat_groups: bool = False

    @property
    def gpus(self) -> int:
        """The number of GPUs in the dimensions."""
        return math.prod(dimension.npus for dimension in self.dimensions)

    def source(self, backend: str) -> str:
        """The source of an answer by a backend."""
        return f"{backend}, flat groups" if self.flat_groups else backend


@dataclass(frozen=True, slots=True)
class Burst:
    """Traffic on a dimension: `size_bytes` sent in `duration_ns`, `offset_ns` after the start."""

    dimension: int
    offset_ns: int
    duration_ns: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class AxisTraffic:
    """Bytes that one NPU sends along an axis in a dimension; its peers are `stride` NPUs apart."""

    dimension: int
    stride: int
    npus: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """A backend's answer for all passes of a query, and its source.

    `bytes_per_dimension` holds the bytes that one NPU sends on each dimension of the query.
    `profile` is the traffic over time. Both are None if the backend does not know them; `profile`
    is also None if it was not asked for.
    """

    finish_ns: int
    compute_ns: int
    source: str
    bytes_per_dimension: tuple[int, ...] | None = None
    profile: tuple[Burst, ...] | None = None
    from_cache: bool = False
    order: str = ""
    """The order of ranks of a divided job, innermost axis first."""
    axes: tuple[AxisTraffic, ...] | None = None
    """What the axes of a divided job send; None for other jobs, whose groups fill dimensions."""
    split: IterationSplit | None = None
    """Where the time goes; None unless it was asked for (`iteration_split.py`)."""

    @property
    def exposed_comm_ns(self) -> int:
        """The time that communication adds to the compute time."""
        return self.finish_ns - self.compute_ns

    @property
    def comm_ratio(self) -> float:
        """Exposed communication over compute (Dally, section IV-C)."""
        # Not through `exposed_comm_ns`, because every start of a job comes here.
        return (self.finish_ns - self.compute_ns) / self.compute_ns if self.compute_ns else 0.0


class LatencyBackend(Protocol):
    """A way to answer queries. `source` names it, with the digest of its image if it has one."""

    source: str

    def estimate(self, query: LatencyQuery, *, profile: bool = False) -> Estimate:
        """Answer one query.

        Raises:
            BackendSettingError: ASTRA-sim would crash or hang on this query.
            BackendError: the backend itself failed.
        """
        ...
