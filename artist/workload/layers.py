"""A workload: one training iteration as ASTRA-sim sees it, layers with times and collectives.

Compute times are microseconds: floats, or whole numbers after `quantised`. Sizes are bytes.

    Workload("resnet50", Parallelism.DATA, (Layer("conv1", forward, input_grad, weight_grad), ...))
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from artist.workload.division.staged import Staged
    from artist.workload.graph import JobGraph


class Collective(StrEnum):
    """Collectives, with the names that ASTRA-sim's text format gives them."""

    NONE = "NONE"
    ALL_REDUCE = "ALLREDUCE"
    ALL_GATHER = "ALLGATHER"
    REDUCE_SCATTER = "REDUCESCATTER"
    ALL_TO_ALL = "ALLTOALL"


class Parallelism(StrEnum):
    """How the steps of an iteration are ordered; `iteration_graph.py` has the orders.

    ASTRA-sim's text format can express DATA and MICRO. It cannot express FSDP and LAYERWISE: it
    has no collective before a layer and none over only some of the GPUs, and it runs NONE as an
    all-reduce.
    """

    DATA = "DATA"
    MICRO = "MICRO"
    FSDP = "FSDP"
    LAYERWISE = "LAYERWISE"
    GRAPH = "GRAPH"
    """The nodes of every GPU, as a trace has them (`graph.py`). It has no layers."""
    STAGED = "STAGED"
    """Stages that run microbatches, divided along several axes (`division/staged.py`)."""


class Scope(StrEnum):
    """Which GPUs of a job take part in a collective. `Degrees` divides the job into groups."""

    ALL = "all"
    TENSOR = "tensor"
    """The GPUs that share each matrix of a stage."""
    CONTEXT = "context"
    """The GPUs that share each sequence."""
    DATA = "data"
    """The GPUs that hold the same part of the model, in different replicas."""
    STAGE = "stage"
    """Two neighbours of a pipeline."""
    EXPERT = "expert"
    """The GPUs over which the experts of a layer are spread."""
    REPLICA = "replica"
    """The GPUs that hold the same expert."""


@dataclass(frozen=True, slots=True)
class Degrees:
    """Into how many parts a job's GPUs are divided.

    Neighbouring GPUs form tensor-parallel groups; the pipeline stages are the outermost division.
    `experts` is the number of experts of a layer. They are spread over that many neighbouring
    GPUs, or over fewer where these do not divide the job (`division/spread.py`).
    """

    tensor: int = 1
    stages: int = 1
    experts: int = 1


@dataclass(frozen=True, slots=True)
class Phase:
    """One pass of one layer: forward, input gradient or weight gradient.

    `comm_bytes` is the size of the collective. For DATA and MICRO it is ASTRA-sim's: an
    all-gather's is what one GPU contributes. For FSDP, LAYERWISE and STAGED it is the whole buffer.
    """

    compute_us: float = 0.0
    collective: Collective = Collective.NONE
    comm_bytes: int = 0
    scope: Scope = Scope.ALL


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer. `update_us` is the time of the weight update; DATA workloads ignore it."""

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
    degrees: Degrees = Degrees()
    graph: JobGraph | None = None
    staged: Staged | None = None

    @property
    def fits_some_gpus(self) -> bool:
        """Whether it suits only certain numbers of GPUs, so not those of neighbouring shapes."""
        return self.graph is not None or self.staged is not None


def quantised(workload: Workload) -> Workload:
    """The workload with whole microseconds, because ASTRA-sim 2.x reads no others.

    The rounding error of one pass is carried into the next one, so every pass starts and ends
    within half a microsecond of its exact time. If each pass were rounded alone, many layers of
    less than half a microsecond would add up to nothing.
    """
    rounding = CarriedRounding()

    def whole(phase: Phase) -> Phase:
        return replace(phase, compute_us=float(rounding.next(phase.compute_us)))

    # In the order of execution: forward from the first layer, then backward from the last.
    forward = [whole(x.forward) for x in workload.layers]
    backward = [(whole(x.weight_grad), whole(x.input_grad)) for x in reversed(workload.layers)]
    layers = tuple(
        Layer(x.name, ahead, input_grad, weight_grad, float(round(x.update_us)))
        for x, ahead, (weight_grad, input_grad) in zip(
            workload.layers, forward, reversed(backward), strict=True
        )
    )
    return replace(workload, layers=layers)


class CarriedRounding:
    """Rounds a series of times. Each result is the difference of two rounded running sums."""

    def __init__(self) -> None:
        self._exact_us = 0.0
        self._rounded_us = 0

    def next(self, exact_us: float) -> int:
        """The next time of the series, in whole microseconds."""
        self._exact_us += exact_us
        whole_us = round(self._exact_us) - self._rounded_us
        self._rounded_us += whole_us
        return whole_us
