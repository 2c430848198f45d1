"""One training step, layer by layer, with and without its all-reduces.

    compute   the step without collectives
    exposed   what the step takes longer with them, each layer's gradient all-reduced
              while earlier layers compute their backward pass (as DistributedDataParallel)

Times are medians over the steps of the slowest process.
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
    """Milliseconds of one layer's passes, and its gradient's bytes."""

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
    """Time a step on this process; all processes of the group call it together."""
    wait = _synchroniser(device)
    alone, together, tails = [], [], []
    for number in range(WARMUP + steps):
        # In turns, so that both see the same machine.
        plain_ms, _ = _step(layers, wait, reduce=False)
        whole_ms, tail_ms = _step(layers, wait, reduce=True)
        if number >= WARMUP:
            alone.append(plain_ms)
            together.append(whole_ms)
            tails.append(tail_ms)
    compute_ms, total_ms = _slowest(median(alone)), _slowest(median(together))
    return StepTimes(
        compute_ms=compute_ms,
        # What is waited for behind the last layer is exposed, however noisy the rest.
        exposed_comm_ms=max(total_ms - compute_ms, _slowest(median(tails))),
        layers=tuple(_layer_times(layer, steps, wait) for layer in layers),
    )


def _step(
    layers: list[MeasuredLayer], wait: Callable[[], None], *, reduce: bool
) -> tuple[float, float]:
    """Milliseconds of a step, and of its wait for collectives after the last layer."""
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
    # On a GPU the processor runs ahead: only the whole step can be told there.
    tail = 0.0 if layers[0].gradient.is_cuda else ended - computed
    return 1e3 * (ended - begun), 1e3 * tail


def _layer_times(layer: MeasuredLayer, steps: int, wait: Callable[[], None]) -> LayerTimes:
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
    """The largest value of all processes."""
    import torch
    import torch.distributed as dist

    device = "cuda" if dist.get_backend() == "nccl" else "cpu"
    held: Any = torch.tensor([value], dtype=torch.float64, device=device)
    dist.all_reduce(held, op=dist.ReduceOp.MAX)
    return float(held.item())


def _synchroniser(device: str) -> Callable[[], None]:
    import torch

    def on_cuda() -> None:
        torch.cuda.synchronize()

    def on_cpu() -> None:
        return

    return on_cuda if device == "cuda" else on_cpu
