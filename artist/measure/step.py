"""Measures one training step, layer by layer, with and without its all-reduces.

    compute   the time of the step without collectives
    exposed   the extra time of the step with collectives

In the step with collectives, each layer's gradient is all-reduced while the layers before it
compute their backward pass, as in torch's DistributedDataParallel. Each time is the median over the
steps; the largest median of all processes counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

from artist.measure.layers import MeasuredLayer

WARMUP = 2


@dataclass(frozen=True, slots=True)
class LayerTimes:
    """Milliseconds of a layer's forward and backward pass, and the bytes of its gradient."""

    name: str
    forward_ms: float
    backward_ms: float
    gradient_bytes: int


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Milliseconds of one step."""

    compute_ms: float
    exposed_comm_ms: float
    layers: tuple[LayerTimes, ...]


def measure_step(layers: list[MeasuredLayer], steps: int, device: str) -> StepTimes:
    """Measure the step. All processes of the group must call it together."""
    wait = _synchroniser(device)
    without, with_reduces, tails = [], [], []
    for number in range(WARMUP + steps):
        # Steps with and without all-reduces take turns, so that both see the same clock rates and
        # the same load.
        plain_ms, _ = _step(layers, wait, reduce=False)
        whole_ms, tail_ms = _step(layers, wait, reduce=True)
        if number >= WARMUP:
            without.append(plain_ms)
            with_reduces.append(whole_ms)
            tails.append(tail_ms)
    compute_ms, total_ms = _slowest(median(without)), _slowest(median(with_reduces))
    return StepTimes(
        compute_ms=compute_ms,
        # The wait after the last layer is exposed for certain. The difference of two noisy times
        # may be smaller.
        exposed_comm_ms=max(total_ms - compute_ms, _slowest(median(tails))),
        layers=tuple(_layer_times(layer, steps, wait) for layer in layers),
    )


def _step(
    layers: list[MeasuredLayer], wait: Callable[[], None], *, reduce: bool
) -> tuple[float, float]:
    """Milliseconds of a step, and of its wait for collectives after the last layer.

    On a GPU the wait is not known; then it is 0.
    """
    import torch.distributed as dist

    wait()
    dist.barrier()
    begun = time.perf_counter()
    outputs = [layer.forward() for layer in layers]
    pending = []
    for layer, output in zip(reversed(layers), reversed(outputs), strict=True):
        output.sum().backward()
        if reduce:
            pending.append(dist.all_reduce(layer.gradient, async_op=True))
    computed = time.perf_counter()
    for work in pending:
        work.wait()
    wait()
    ended = time.perf_counter()
    # The processor only queues the work of a GPU, so it cannot tell when the GPU has computed.
    tail = 0.0 if layers[0].gradient.is_cuda else ended - computed
    return 1e3 * (ended - begun), 1e3 * tail


def _layer_times(layer: MeasuredLayer, steps: int, wait: Callable[[], None]) -> LayerTimes:
    """The passes of one layer, each timed on its own."""
    forward, backward = [], []
    for _ in range(steps):
        wait()
        begun = time.perf_counter()
        output = layer.forward()
        wait()
        middle = time.perf_counter()
        output.sum().backward()
        wait()
        forward.append(middle - begun)
        backward.append(time.perf_counter() - middle)
    size = layer.gradient.numel() * layer.gradient.element_size()
    return LayerTimes(layer.name, 1e3 * median(forward), 1e3 * median(backward), size)


def _slowest(value: float) -> float:
    """The largest value among all processes."""
    import torch
    import torch.distributed as dist

    device = "cuda" if dist.get_backend() == "nccl" else "cpu"
    tensor: Any = torch.tensor([value], dtype=torch.float64, device=device)
    dist.all_reduce(tensor, op=dist.ReduceOp.MAX)
    return float(tensor.item())


def _synchroniser(device: str) -> Callable[[], None]:
    """A function that waits until the device has done all queued work."""
    import torch

    def on_cuda() -> None:
        torch.cuda.synchronize()

    def on_cpu() -> None:
        return

    return on_cuda if device == "cuda" else on_cpu
