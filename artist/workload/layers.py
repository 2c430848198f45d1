"""A model as ASTRA-sim sees it: layers with compute times and collectives.

Reads and writes ASTRA-sim's text workload format. Compute times are in
microseconds (floats until `quantised`), collective sizes in bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Collective(StrEnum):
    """Collectives by the names of ASTRA-sim's text format."""

    NONE = "NONE"
    ALL_REDUCE = "ALLREDUCE"
    ALL_GATHER = "ALLGATHER"
    REDUCE_SCATTER = "REDUCESCATTER"
    ALL_TO_ALL = "ALLTOALL"


class Parallelism(StrEnum):
    """First line of a text workload; decides which columns are used."""

    DATA = "DATA"
    MICRO = "MICRO"


@dataclass(frozen=True, slots=True)
class Phase:
    """Forward, input-gradient or weight-gradient pass of one layer."""

    compute_us: float = 0.0
    collective: Collective = Collective.NONE
    comm_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer. `update_us` is the weight-update time, which DATA workloads ignore."""

    name: str
    forward: Phase
    input_grad: Phase
    weight_grad: Phase
    update_us: float = 0.0


@dataclass(frozen=True, slots=True)
class Workload:
    """One training iteration of a model on one worker."""

    name: str
    parallelism: Parallelism
    layers: tuple[Layer, ...]
