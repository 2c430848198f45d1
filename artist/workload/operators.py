"""The few operators that deep networks are built of, and what they cost.

An operator knows its trainable parameters, its multiply-accumulates and the activations
it reads and writes for one sample. Parameters of a normalisation are folded into the
operator next to it, so a layer has one gradient and one all-reduce; its arithmetic, like
that of activations and pooling, is left out as negligible.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto


class Kind(Enum):
    """How an operator uses the GPU; decides what share of the peak it reaches."""

    CONVOLUTION = auto()
    MATMUL = auto()
    LOOKUP = auto()
    """Rows of a table: no arithmetic, and only the rows looked up are read."""


class Role(Enum):
    """How an operator is divided among GPUs where a model is (see `artist.workload.parallel`)."""

    WHOLE = auto()
    COLUMN = auto()
    """Tensor parallel by outputs: its input gradient is summed over the group."""
    ROW = auto()
    """Tensor parallel by inputs: its output is summed over the group."""
    EXPERT = auto()
    """One of many experts on each GPU; samples travel to them and back."""


@dataclass(frozen=True, slots=True)
class Operator:
    """A layer with parameters. The rest is the forward pass of one sample.

    `parameters` of an EXPERT are those of all `experts` together.
    """

    name: str
    kind: Kind
    parameters: int
    macs: int
    inputs: int = 0
    """Elements of its input."""
    outputs: int = 0
    """Elements of its output."""
    role: Role = Role.WHOLE
    experts: int = 1
    rows: int = 1
    """Positions of a sample that it is applied to (1 for a convolution)."""
    conv: tuple[Conv, Image] | None = None
    """A convolution's sizes and its input's shape."""


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
        """After a sliding window, with partial windows at the edge dropped."""
        return Image(self.channels, (self.side + 2 * padding - kernel) // stride + 1)


@dataclass(frozen=True, slots=True)
class Conv:
    """A square convolution. `padding` keeps the size at stride 1 unless given.

    `groups` equal to the channels makes it depthwise. `norm` adds a batch
    normalisation (scale and shift per channel), `bias` a bias per channel.
    """

    out: int
    kernel: int
    stride: int = 1
    padding: int | None = None
    groups: int = 1
    norm: bool = True
    bias: bool = False

    def output(self, image: Image) -> Image:
        """Shape after this convolution."""
        padding = self.kernel // 2 if self.padding is None else self.padding
        return Image(self.out, image.reduced(self.kernel, self.stride, padding).side)

    def operator(self, name: str, image: Image) -> Operator:
        """The operator on an input of shape `image`."""
        weights = self.out * (image.channels // self.groups) * self.kernel**2
        per_channel = 2 * self.norm + self.bias
        result = self.output(image)
        return Operator(
            name,
            Kind.CONVOLUTION,
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
    """A fully connected layer, applied to `rows` positions of each sample.

    `norm` adds a layer normalisation of the outputs.
    """
    weights = inputs * outputs
    per_output = bias + 2 * norm
    return Operator(
        name,
        Kind.MATMUL,
        weights + per_output * outputs,
        rows * weights,
        rows * inputs,
        rows * outputs,
        role,
        rows=rows,
    )


def lookup(name: str, table_rows: int, width: int, *, rows: int = 1, extra: int = 0) -> Operator:
    """A table of which `rows` rows are looked up per sample, and `extra` other parameters.

    Its gradient is sent dense.
    """
    parameters = table_rows * width + extra
    return Operator(name, Kind.LOOKUP, parameters, 0, rows, rows * width, rows=rows)
