"""Measures one training step, layer by layer, with and without its all-reduces.

    compute   the time of the step without collectives
    exposed   the extra time of the step with collectives

In the step with collectives, each layer's gradient is all-reduced while the layers before it
compute their backward pass, as in torch's DistributedDataParallel. Each time is the median over the
steps, and the largest of all processes.

The layers are torch modules with the real shapes of a model of the catalogue. Every operator gets a
random input of its own shape, not the output of the operator before it. So a step needs no
knowledge of how the network is connected. Kernels, gradients and their sizes are real. Residual
additions, activations and pooling are left out, as in the catalogue.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

from artist.workload.architectures.operators import Operator, OperatorKind
from artist.workload.gpus import Precision

WARMUP = 2

# Attention is measured with heads of this width, as in BERT and GPT-2.
_HEAD_WIDTH = 64


@dataclass(frozen=True, slots=True)
class LayerTimes:
    """Milliseconds of a layer's forward and backward pass, and the bytes of its gradient."""

    name: str
    forward_ms: float
    backward_ms: float
    gradient_bytes: int


@dataclass(frozen=True, slots=True)
class MeasuredStep:
    """Milliseconds of one step."""

    compute_ms: float
    exposed_comm_ms: float
    layers: tuple[LayerTimes, ...]


def measure_step(layers: list[MeasuredLayer], steps: int, device: str) -> MeasuredStep:
    """Measure the step. All processes of the group must call it together."""
    import torch.distributed as dist

    wait = synchroniser(device)
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
    # The wait after the last layer is certainly exposed, but the difference of two noisy times may
    # be smaller.
    exposed_ms = max(total_ms - compute_ms, _slowest(median(tails)))
    return MeasuredStep(
        compute_ms=compute_ms,
        exposed_comm_ms=exposed_ms if dist.get_world_size() > 1 else 0.0,
        layers=tuple(_layer_times(layer, steps, wait) for layer in layers),
    )


def _step(
    layers: list[MeasuredLayer], wait: Callable[[], None], *, reduce: bool
) -> tuple[float, float]:
    """Milliseconds of a step, and of its wait for collectives after the last layer.

    On a GPU the wait is unknown and given as 0.
    """
    import torch.distributed as dist

    wait()
    dist.barrier()
    begun = time.perf_counter()
    pending = train_once(layers, reduce=reduce)
    computed = time.perf_counter()
    for work in pending:
        work.wait()
    wait()
    ended = time.perf_counter()
    # The CPU only queues the work of a GPU, so it does not know when the GPU has computed.
    tail = 0.0 if layers[0].gradient.is_cuda else ended - computed
    return 1e3 * (ended - begun), 1e3 * tail


def train_once(layers: list[MeasuredLayer], *, reduce: bool) -> list[Any]:
    """Queue the work of one step; returns the all-reduces in progress."""
    import torch.distributed as dist

    outputs = [layer.forward() for layer in layers]
    pending = []
    for layer, output in zip(reversed(layers), reversed(outputs), strict=True):
        output.sum().backward()
        if reduce:
            pending.append(dist.all_reduce(layer.gradient, async_op=True))
    return pending


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


def synchroniser(device: str) -> Callable[[], None]:
    """A function that waits until the device has finished all queued work."""
    import torch

    def on_cuda() -> None:
        torch.cuda.synchronize()

    def on_cpu() -> None:
        return

    return on_cuda if device == "cuda" else on_cpu


@dataclass(slots=True)
class MeasuredLayer:
    """One operator: a torch module, its input, and a buffer as large as its gradient."""

    name: str
    module: Any
    inputs: Any
    gradient: Any
    attention: tuple[int, int, int] | None = None
    """(batch x heads, positions, head width) of the attention counted with this operator."""

    def forward(self) -> Any:
        """The layer's output; torch keeps what the backward pass needs."""
        from torch.nn import functional

        output = self.module(self.inputs)
        if self.attention is None:
            return output
        heads, positions, width = self.attention
        # Fused attention needs four axes; with three, torch materialises the scores.
        shape = (1, heads, positions, width)
        # The time of attention depends only on shapes, so one tensor is query, key and value.
        query = output.reshape(-1)[: math.prod(shape)].reshape(shape)
        scores = functional.scaled_dot_product_attention(query, query, query)
        return output.sum() + scores.sum()


def build(
    operators: tuple[Operator, ...], batch: int, device: str, precision: Precision
) -> list[MeasuredLayer]:
    """The layers of a model on a device, with random weights and inputs."""
    import torch

    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")  # TF32, where a GPU has it
    dtype = torch.bfloat16 if precision is Precision.BF16 else torch.float32
    layers = []
    for operator in operators:
        module, inputs = _module(operator, batch)
        gradient = torch.zeros(operator.parameters, device=device, dtype=dtype)
        if operator.kind is OperatorKind.LOOKUP:
            inputs = inputs.to(device)
        else:
            # A leaf, so that it gets a gradient, as the output of an earlier layer would.
            inputs = inputs.to(device, dtype).requires_grad_()
        layers.append(
            MeasuredLayer(
                operator.name,
                module.to(device, dtype),
                inputs,
                gradient,
                _attention(operator, batch),
            )
        )
    return layers


def _module(operator: Operator, batch: int) -> tuple[Any, Any]:
    """The torch module of an operator, and a random input."""
    import torch

    if operator.conv is not None:
        conv, image = operator.conv
        half = tuple(side // 2 for side in conv.window)
        module = torch.nn.Conv2d(
            image.channels,
            conv.out,
            conv.window,
            stride=conv.stride,
            padding=half if conv.padding is None else conv.padding,
            groups=conv.groups,
            bias=conv.bias,
        )
        inputs = torch.randn(batch * operator.rows, image.channels, image.side, image.side)
        return module, inputs
    width = operator.outputs // operator.rows
    if operator.kind is OperatorKind.LOOKUP:
        table_rows = operator.parameters // width
        indices = torch.randint(0, table_rows, (batch * operator.rows,))
        return torch.nn.Embedding(table_rows, width), indices
    linear = torch.nn.Linear(operator.inputs // operator.rows, width)
    inputs = torch.randn(batch * operator.rows, operator.inputs // operator.rows)
    return linear, inputs


def _attention(operator: Operator, batch: int) -> tuple[int, int, int] | None:
    """The shape of the attention that an operator's arithmetic includes; None if it has none.

    The catalogue counts the multiply-adds of attention with those of a matrix, so such an operator
    has more of them than its matrix alone.
    """
    if operator.kind is not OperatorKind.MATMUL or operator.rows == 1:
        return None
    hidden = operator.outputs // operator.rows
    extra = operator.macs - operator.inputs * hidden
    if extra <= 0 or hidden % _HEAD_WIDTH:
        return None
    return batch * hidden // _HEAD_WIDTH, operator.rows, _HEAD_WIDTH
