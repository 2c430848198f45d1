"""A catalogue model as torch layers of its real shapes.

Every operator runs on an input of its own shape, so that a step needs no knowledge of how
a network is wired: kernels, gradients and their sizes are real, residual additions,
activations and pooling are left out, as they are in the catalogue.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from artist.workload.gpus import Precision
from artist.workload.operators import Kind, Operator

_HEAD_WIDTH = 64


@dataclass(slots=True)
class MeasuredLayer:
    """One operator: a torch module, its input, and a buffer as large as its gradient."""

    name: str
    module: Any
    inputs: Any
    gradient: Any
    attention: tuple[int, int, int] | None = None
    """(batch x heads, positions, width) of the scores that count with this layer."""

    def forward(self) -> Any:
        """The layer's output, with the graph for its backward pass."""
        from torch.nn import functional

        output = self.module(self.inputs)
        if self.attention is None:
            return output
        heads, positions, width = self.attention
        shape = (heads, positions, width)
        query = output.reshape(-1)[: heads * positions * width].reshape(shape)
        scores = functional.scaled_dot_product_attention(query, query, query)
        return output.sum() + scores.sum()


def build(
    found: tuple[Operator, ...], batch: int, device: str, precision: Precision
) -> list[MeasuredLayer]:
    """The layers of a model on a device; small random weights and inputs."""
    import torch

    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")  # TF32, where a GPU has it
    kind = torch.bfloat16 if precision is Precision.BF16 else torch.float32
    layers = []
    for operator in found:
        module, inputs = _module(operator, batch)
        gradient = torch.zeros(operator.parameters, device=device, dtype=kind)
        inputs = inputs.to(device) if operator.kind is Kind.LOOKUP else _leaf(inputs, device, kind)
        layers.append(
            MeasuredLayer(
                operator.name,
                module.to(device, kind),
                inputs,
                gradient,
                _attention(operator, batch),
            )
        )
    return layers


def _leaf(inputs: Any, device: str, kind: Any) -> Any:
    """On the device, with a gradient of its own: as from a layer before it."""
    return inputs.to(device, kind).requires_grad_()


def _module(operator: Operator, batch: int) -> tuple[Any, Any]:
    import torch

    if operator.conv is not None:
        conv, image = operator.conv
        padding = conv.kernel // 2 if conv.padding is None else conv.padding
        module = torch.nn.Conv2d(
            image.channels,
            conv.out,
            conv.kernel,
            stride=conv.stride,
            padding=padding,
            groups=conv.groups,
            bias=conv.bias,
        )
        inputs = torch.randn(batch, image.channels, image.side, image.side)
        return module, inputs
    width = operator.outputs // operator.rows
    if operator.kind is Kind.LOOKUP:
        table_rows = operator.parameters // width
        indices = torch.randint(0, table_rows, (batch * operator.rows,))
        return torch.nn.Embedding(table_rows, width), indices
    linear = torch.nn.Linear(operator.inputs // operator.rows, width)
    inputs = torch.randn(batch * operator.rows, operator.inputs // operator.rows)
    return linear, inputs


def _attention(operator: Operator, batch: int) -> tuple[int, int, int] | None:
    """Of operators whose arithmetic is more than their matrix."""
    if operator.kind is not Kind.MATMUL or operator.rows == 1:
        return None
    hidden = operator.outputs // operator.rows
    extra = operator.macs - operator.inputs * hidden
    if extra <= 0 or hidden % _HEAD_WIDTH:
        return None
    return batch * hidden // _HEAD_WIDTH, operator.rows, _HEAD_WIDTH
