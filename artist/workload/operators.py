"""The few operators that deep networks are built of, and what they cost.

An operator knows its trainable parameters and its multiply-accumulates for one
sample. Parameters of a normalisation are folded into the operator it follows,
so a layer has one gradient and one all-reduce; its arithmetic, like that of
activations and pooling, is left out as negligible.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto


class Kind(Enum):
    """How an operator uses the GPU; decides what share of the peak it reaches."""

    CONVOLUTION = auto()
    MATMUL = auto()


@dataclass(frozen=True, slots=True)
class Operator:
    """A layer with parameters. `macs` is the forward pass of one sample."""

    name: str
    kind: Kind
    parameters: int
    macs: int


@dataclass(frozen=True, slots=True)
class Image:
    """Shape of a square activation: channels x side x side."""

    channels: int
    side: int

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
        macs = weights * self.output(image).side ** 2
        return Operator(name, Kind.CONVOLUTION, weights + per_channel * self.out, macs)


def linear(name: str, inputs: int, outputs: int, *, rows: int = 1, norm: bool = False) -> Operator:
    """A fully connected layer with bias, applied to `rows` positions of each sample.

    `norm` adds a layer normalisation of the outputs.
    """
    weights = inputs * outputs
    per_output = 1 + 2 * norm
    return Operator(name, Kind.MATMUL, weights + per_output * outputs, rows * weights)
