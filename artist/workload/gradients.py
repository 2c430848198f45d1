"""How gradients are sent: in buckets, and behind which part of the backward pass.

**Buckets**, as PyTorch's DistributedDataParallel makes them. Gradients become ready from the last
layer to the first. They fill a bucket; as soon as it holds its size or more, it is sent as one
all-reduce and the next bucket begins. So a large gradient is never split. Source: Li et al.,
*PyTorch Distributed: Experiences on Accelerating Data Parallel Training*, VLDB 2020, section 3.2.3
(buckets), and the defaults of PyTorch's DistributedDataParallel (25 MiB; 1 MiB for the first
bucket, so that communication begins early).

The layers of a bucket become one layer. Its passes take the times of the layers' passes, in the
order in which they run, so the bucket is ready when its last gradient is:

    forward          all forward passes
    weight gradient  all backward passes of the bucket up to the last weight gradient
    input gradient   the one input-gradient pass after it

**The hidden share.** ASTRA-sim lets the backward pass of a layer run while the gradients of later
layers are sent, at full speed. On machines the two slow each other down: collectives take cores,
memory bandwidth and the host. The hidden share models that with one number: communication can hide
behind only this share of the backward pass. Pollux (OSDI 2021, equation 10) and Sia fit such a
number too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from artist.units import MIB
from artist.workload.layers import Collective, Layer, Parallelism, Phase, Workload

_GRADIENTS = {Collective.ALL_REDUCE, Collective.NONE}


def bucketed(workload: Workload, bucket_mib: float, first_bucket_mib: float) -> Workload:
    """A data-parallel workload with its gradients in buckets; any other workload unchanged.

    Sizes are MiB. The sums of compute times and bytes stay the same.
    """
    kinds = {layer.weight_grad.collective for layer in workload.layers}
    if workload.parallelism is not Parallelism.DATA or not kinds <= _GRADIENTS:
        return workload
    buckets = _filled(workload.layers, bucket_mib * MIB, first_bucket_mib * MIB)
    return replace(workload, layers=tuple(reversed([_merged(bucket) for bucket in buckets])))


def _filled(layers: Sequence[Layer], size: float, first_size: float) -> Iterator[list[Layer]]:
    """The layers of each bucket, in the order of the backward pass."""
    bucket: list[Layer] = []
    filled_bytes, limit = 0, first_size
    for layer in reversed(layers):
        bucket.append(layer)
        filled_bytes += layer.weight_grad.comm_bytes
        if filled_bytes >= limit:
            yield bucket
            bucket, filled_bytes, limit = [], 0, size
    if bucket:
        yield bucket


def _merged(bucket: list[Layer]) -> Layer:
    """One layer for a bucket, named after the layer whose gradient is ready last."""
    *before, last = bucket
    size = sum(layer.weight_grad.comm_bytes for layer in bucket)
    backward_us = sum(x.weight_grad.compute_us + x.input_grad.compute_us for x in before)
    reduced = Collective.ALL_REDUCE if size else last.weight_grad.collective
    return Layer(
        last.name,
        Phase(sum(layer.forward.compute_us for layer in bucket)),
        Phase(last.input_grad.compute_us),
        Phase(backward_us + last.weight_grad.compute_us, reduced, size),
        sum(layer.update_us for layer in bucket),
    )


def with_hidden_share(workload: Workload, share: float) -> Workload:
    """Let only this share of the backward pass hide communication, in a data-parallel workload.

    The rest is computed with the first layer's forward pass, when nothing is sent. The sums of
    compute times and bytes stay the same. Any other workload is returned unchanged.
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
