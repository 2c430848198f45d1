"""What every latency backend answers: one iteration's communication time.

A `LatencyQuery` holds everything that ASTRA-sim can distinguish and nothing
else (no job, no machine); an `Estimate` carries the value, its source and, for
those who need them, the traffic it stands for. Times in this package are
nanoseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from artist.workload.layers import Workload


class Topology(StrEnum):
    """Basic topologies of ASTRA-sim's analytical network."""

    RING = "Ring"
    FULLY_CONNECTED = "FullyConnected"
    SWITCH = "Switch"


@dataclass(frozen=True, slots=True)
class Dimension:
    """One network dimension, as ASTRA-sim lists them: innermost first.

    `bandwidth_gib_per_s` is per NPU and direction. `level` names the cluster
    level that the dimension stands for ("" where a query was built by hand).
    """

    topology: Topology
    npus: int
    bandwidth_gib_per_s: float
    latency_ns: float
    level: str = ""


@dataclass(frozen=True, slots=True)
class SystemSettings:
    """ASTRA-sim's system layer. The four tuples hold one algorithm name per dimension.

    Names are ASTRA-sim's: ring, direct, directW (e.g. direct2), halvingDoubling,
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
    """One question to a backend. The workload's compute times are whole microseconds."""

    workload: Workload
    dimensions: tuple[Dimension, ...]
    system: SystemSettings
    passes: int = 1


@dataclass(frozen=True, slots=True)
class Burst:
    """A dimension busy with `size_bytes` for `duration_ns`, `offset_ns` into the iteration."""

    dimension: int
    offset_ns: int
    duration_ns: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """A backend's answer for all passes of a query, with where it came from.

    `bytes_per_dimension` is what one NPU sends per dimension (one number per
    dimension of the query); `profile` the traffic over time. Both are None
    where the backend cannot tell, and `profile` also where it was not asked.
    """

    finish_ns: int
    compute_ns: int
    source: str
    bytes_per_dimension: tuple[int, ...] | None = None
    profile: tuple[Burst, ...] | None = None
    from_cache: bool = False

    @property
    def exposed_comm_ns(self) -> int:
        """Time that communication adds to the iteration: everything that is not compute."""
        return self.finish_ns - self.compute_ns

    @property
    def comm_ratio(self) -> float:
        """Exposed communication over compute (Dally, section IV-C)."""
        return self.exposed_comm_ns / self.compute_ns if self.compute_ns else 0.0


class LatencyBackend(Protocol):
    """A way to answer queries. `source` names it (and its image digest, if any)."""

    source: str

    def estimate(self, query: LatencyQuery, *, profile: bool = False) -> Estimate:
        """Answer one query.

        Raises:
            BackendSettingError: the query is one that ASTRA-sim crashes or hangs on.
            BackendError: the backend itself failed.
        """
        ...
