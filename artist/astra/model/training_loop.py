"""The order in which ASTRA-sim's workload layer runs a text workload.

An NPU does one computation and one collective at a time. Collectives run in the order in which
they become free.

DATA: first the forward passes of all layers. Then the layers go backwards. Each computes its
weight gradient, which frees its collective, and then, except the first layer, its input gradient.
The next pass begins when all collectives are done. With two layers:

    forward 0, forward 1, weight-grad 1 (frees collective 1), input-grad 1,
    weight-grad 0 (frees collective 0)

MICRO: the weight-gradient collectives alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from artist.astra.messages.chunks_and_stages import Request, actual
from artist.workload.graph import duration_ns
from artist.workload.layers import Parallelism, Workload


@dataclass(frozen=True, slots=True)
class Compute:
    """One computation.

    If it `frees`, the next collective becomes free at its end. If it `joins`, it begins only
    when all collectives that have become free are done.
    """

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
        """The time of all computations together."""
        return sum(compute.duration_ns for compute in self.computes)


def program(workload: Workload) -> Program:
    """One pass of a workload."""
    backward = workload.layers[::-1]
    collectives = tuple(
        (actual(layer.weight_grad.collective), layer.weight_grad.comm_bytes, None)
        for layer in backward
    )
    if workload.parallelism is Parallelism.MICRO:
        return Program((), collectives[::-1])
    computes = [
        Compute(duration_ns(layer.forward.compute_us), joins=index == 0)
        for index, layer in enumerate(workload.layers)
    ]
    for layers_before, layer in zip(range(len(backward) - 1, -1, -1), backward, strict=True):
        computes.append(Compute(duration_ns(layer.weight_grad.compute_us), frees=True))
        if layers_before:
            computes.append(Compute(duration_ns(layer.input_grad.compute_us)))
    return Program(tuple(computes), collectives)
