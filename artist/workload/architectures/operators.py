"""Operators: the building blocks of networks, with their sizes and costs.

An operator has trainable parameters, and for one sample the multiply-accumulates (MACs) of its
forward pass and the elements that it reads and writes.

The parameters of a normalisation are counted with the operator next to it, so that a layer has
one gradient and one all-reduce. The arithmetic of normalisations, activations and pooling is
negligible and left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from math import prod


class OperatorKind(Enum):
    """How an operator uses the GPU. This decides which share of the peak it reaches."""

    CONVOLUTION = auto()
    MATMUL = auto()
    LOOKUP = auto()
    """Rows of a table: no arithmetic, and only the rows that are looked up are read."""


class Role(Enum):
    """How an operator is divided if the model is divided among GPUs (see `parallelism.py`)."""

    WHOLE = auto()
    COLUMN = auto()
    """Tensor parallel by outputs: the input gradient is summed over the tensor group."""
    ROW = auto()
    """Tensor parallel by inputs: the output is summed over the tensor group."""
    FIRST_OF_EXPERT = auto()
    """The first layer of experts, which are spread over GPUs: samples are sent to it."""
    LAST_OF_EXPERT = auto()
    """The last layer of experts: samples are sent back from it."""


@dataclass(frozen=True, slots=True)
class Operator:
    """A layer with parameters. `macs`, `inputs` and `outputs` are for one sample, forward."""

    name: str
    kind: OperatorKind
    parameters: int
    """Trainable parameters. Of experts, those of all `experts` together."""
    macs: int
    inputs: int = 0
    """Elements of the input."""
    outputs: int = 0
    """Elements of the output."""
    role: Role = Role.WHOLE
    experts: int = 1
    active: int = 1
    """Of the experts, those that each position of a sample is sent to."""
    rows: int = 1
    """Number of positions of a sample to which it is applied; for a convolution, of images."""
    conv: tuple[Conv, Image] | None = None
    """For a convolution: its sizes and the shape of its input."""


@dataclass(frozen=True, slots=True)
class Image:
    """Shape of a square activation: channels x side x side."""

    channels: int
    side: int

    @property
    def elements(self) -> int:
        """Number of values."""
        return self.channels * self.side**2

    def reduced(self, kernel: int, stride: int, padding: int) -> Image:
        """The shape after a sliding window. Partial windows at the edge are dropped."""
        return Image(self.channels, (self.side + 2 * padding - kernel) // stride + 1)


@dataclass(frozen=True, slots=True)
class Conv:
    """A convolution, square unless its kernel has another `width`.

    Without `padding`, the padding is half the kernel, which keeps the size at stride 1. A kernel
    that is not square has no other. With `groups` equal to the channels, the convolution is
    depthwise. `norm` adds a batch normalisation (scale and shift per channel), `bias` a bias per
    channel.
    """

    out: int
    kernel: int
    stride: int = 1
    padding: int | None = None
    groups: int = 1
    norm: bool = True
    bias: bool = False
    width: int | None = None

    @property
    def window(self) -> tuple[int, int]:
        """Height and width of the kernel."""
        return self.kernel, self.kernel if self.width is None else self.width

    def output(self, image: Image) -> Image:
        """The shape after this convolution."""
        padding = self.kernel // 2 if self.padding is None else self.padding
        return Image(self.out, image.reduced(self.kernel, self.stride, padding).side)

    def operator(self, name: str, image: Image) -> Operator:
        """The operator on an input of shape `image`."""
        weights = self.out * (image.channels // self.groups) * prod(self.window)
        per_channel = 2 * self.norm + self.bias
        result = self.output(image)
        return Operator(
            name,
            OperatorKind.CONVOLUTION,
            weights + per_channel * self.out,
            weights * result.side**2,
            image.elements,
            result.elements,
            conv=(self, image),
        )


def linear(
    name: str,
    inputs: int,
    outputs: int,
    *,
    rows: int = 1,
    norm: bool = False,
    bias: bool = True,
    role: Role = Role.WHOLE,
) -> Operator:
    """A fully connected layer that is applied to `rows` positions of each sample.

    `norm` adds a layer normalisation of the outputs (scale and shift).
    """
    weights = inputs * outputs
    per_output = bias + 2 * norm
    return Operator(
        name,
        OperatorKind.MATMUL,
        weights + per_output * outputs,
        rows * weights,
        rows * inputs,
        rows * outputs,
        role,
        rows=rows,
    )


def lookup(name: str, table_rows: int, width: int, *, rows: int = 1, extra: int = 0) -> Operator:
    """A table with `table_rows` rows of `width` elements and `extra` other parameters.

    `rows` of its rows are looked up per sample. Its gradient is sent dense, as a whole table.
    """
    parameters = table_rows * width + extra
    return Operator(name, OperatorKind.LOOKUP, parameters, 0, rows, rows * width, rows=rows)
