"""The order in which ASTRA-sim's workload layer runs a text workload.

An NPU computes one thing and communicates one thing at a time; collectives are
served in the order in which they become free. DATA: forward over all layers,
then backwards the weight gradient (which frees the layer's collective) and,
but for the first layer, the input gradient; the next pass begins when all
collectives are done. MICRO: the weight-gradient collectives alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from artist.astra.model.collectives import Request, actual
from artist.workload.layers import Parallelism, Workload

NS_PER_US = 1000


@dataclass(frozen=True, slots=True)
class Compute:
    """One computation. `frees` a collective at its end; `joins` all freed before it begins."""

    duration_ns: int
    frees: bool = False
    joins: bool = False


@dataclass(frozen=True, slots=True)
class Program:
    """What each NPU does. Without computations all collectives are free at once."""

    computes: tuple[Compute, ...]
    collectives: tuple[Request, ...]

    @property
    def compute_ns(self) -> int:
        """All computations together."""
        return sum(compute.duration_ns for compute in self.computes)

    def repeated(self, passes: int) -> Program:
        """The program of several passes."""
        return Program(self.computes * passes, self.collectives * passes)


def duration_ns(compute_us: float) -> int:
    """ASTRA-sim reads whole microseconds and takes a nanosecond for nothing."""
    return int(compute_us) * NS_PER_US or 1


def program(workload: Workload) -> Program:
    """One pass of a workload."""
    backward = workload.layers[::-1]
    collectives = tuple(
        (actual(layer.weight_grad.collective), layer.weight_grad.comm_bytes) for layer in backward
    )
    if workload.parallelism is Parallelism.MICRO:
        return Program((), collectives[::-1])
    computes = [
        Compute(duration_ns(layer.forward.compute_us), joins=index == 0)
        for index, layer in enumerate(workload.layers)
    ]
    for left, layer in zip(range(len(backward) - 1, -1, -1), backward, strict=True):
        computes.append(Compute(duration_ns(layer.weight_grad.compute_us), frees=True))
        if left:
            computes.append(Compute(duration_ns(layer.input_grad.compute_us)))
    return Program(tuple(computes), collectives)
