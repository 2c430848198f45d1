"""A model of the catalogue as torch layers with the model's real shapes.

Every operator gets a random input of its own shape, not the output of the operator before it. So
a step needs no knowledge of how the network is connected. Kernels, gradients and their sizes are
real. Residual additions, activations and pooling are left out, as in the catalogue.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from artist.workload.gpus import Precision
from artist.workload.operators import Kind, Operator

# Attention is measured with heads of this width, as in BERT and GPT-2.
_HEAD_WIDTH = 64


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
        shape = (heads, positions, width)
        # Attention's time depends on the shapes only, so one tensor is query, key and value.
        query = output.reshape(-1)[: heads * positions * width].reshape(shape)
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
        inputs = inputs.to(device) if operator.kind is Kind.LOOKUP else _leaf(inputs, device, dtype)
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


def _leaf(inputs: Any, device: str, dtype: Any) -> Any:
    """Inputs on the device that get a gradient, like the output of an earlier layer would."""
    return inputs.to(device, dtype).requires_grad_()


def _module(operator: Operator, batch: int) -> tuple[Any, Any]:
    """The torch module of an operator, and a random input."""
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
    """The shape of the attention that an operator's arithmetic includes; None if it has none.

    The catalogue adds the multiply-adds of attention to those of a matrix. So such an operator has
    more of them than its matrix alone.
    """
    if operator.kind is not Kind.MATMUL or operator.rows == 1:
        return None
    hidden = operator.outputs // operator.rows
    extra = operator.macs - operator.inputs * hidden
    if extra <= 0 or hidden % _HEAD_WIDTH:
        return None
    return batch * hidden // _HEAD_WIDTH, operator.rows, _HEAD_WIDTH
