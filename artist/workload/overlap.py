"""How much of the backward pass hides communication.

ASTRA-sim lets the backward pass of a layer run while the gradients of later layers are sent, at
full speed. On machines the two slow each other down: collectives take cores, memory bandwidth and
the host. The hidden share is one number for that: communication can hide behind this share of the
backward pass alone. Pollux (OSDI 2021, equation 10) and Sia fit such a number too.
"""

from __future__ import annotations

from dataclasses import replace

from artist.workload.layers import Layer, Parallelism, Phase, Workload


def with_hidden_share(workload: Workload, share: float) -> Workload:
    """A data-parallel workload of which only this share of the backward pass hides communication.

    The rest is computed with the first layer's forward pass, when nothing is sent. The sums of
    compute times and bytes stay the same. Any other workload is unchanged.
    """
    if share == 1.0 or workload.parallelism is not Parallelism.DATA:
        return workload
    first, *others = (_with_backward_times(layer, share) for layer in workload.layers)
    # ASTRA-sim never computes the input gradient of the first layer.
    backward_us = workload.layers[0].weight_grad.compute_us + sum(
        layer.weight_grad.compute_us + layer.input_grad.compute_us for layer in workload.layers[1:]
    )
    forward = Phase(first.forward.compute_us + (1.0 - share) * backward_us)
    return replace(workload, layers=(replace(first, forward=forward), *others))


def _with_backward_times(layer: Layer, factor: float) -> Layer:
    def scaled(phase: Phase) -> Phase:
        return replace(phase, compute_us=factor * phase.compute_us)

    return replace(
        layer, input_grad=scaled(layer.input_grad), weight_grad=scaled(layer.weight_grad)
    )
