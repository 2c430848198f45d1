"""Convolutional image classifiers, layer by layer, for ImageNet (224 x 224 pixels, 1000 classes).

Each follows torchvision's implementation, whose parameter counts are the published ones.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from artist.workload.architectures.operators import Conv, Image, Operator, linear

_INPUT = Image(channels=3, side=224)
_CLASSES = 1000


class _Net:
    """A network built layer by layer. `image` is the shape of the last layer's output."""

    def __init__(self) -> None:
        self.image = _INPUT
        self.operators: list[Operator] = []

    def conv(self, name: str, conv: Conv) -> None:
        self.operators.append(conv.operator(name, self.image))
        self.image = conv.output(self.image)

    def pool(self, kernel: int, stride: int = 2, padding: int = 0) -> None:
        self.image = self.image.reduced(kernel, stride, padding)

    def pool_to(self, side: int) -> None:
        self.image = replace(self.image, side=side)

    def classifier(self, *widths: int) -> tuple[Operator, ...]:
        """All layers of the network, ended by fully connected layers of these widths."""
        inputs = self.image.channels * self.image.side**2
        for number, outputs in enumerate(widths, 1):
            self.operators.append(linear(f"fc{number}", inputs, outputs))
            inputs = outputs
        return tuple(self.operators)


def alexnet() -> tuple[Operator, ...]:
    """AlexNet in its one-column form (Krizhevsky 2014, arXiv:1404.5997)."""
    net = _Net()
    net.conv("conv1", Conv(64, kernel=11, stride=4, padding=2, norm=False, bias=True))
    net.pool(kernel=3)
    net.conv("conv2", Conv(192, kernel=5, norm=False, bias=True))
    net.pool(kernel=3)
    for number, out in enumerate((384, 256, 256), start=3):
        net.conv(f"conv{number}", Conv(out, kernel=3, norm=False, bias=True))
    net.pool(kernel=3)
    return net.classifier(4096, 4096, _CLASSES)


def _vgg(*convolutions: int) -> tuple[Operator, ...]:
    net = _Net()
    for stage, (out, count) in enumerate(
        zip((64, 128, 256, 512, 512), convolutions, strict=True), start=1
    ):
        for number in range(1, count + 1):
            net.conv(f"conv{stage}_{number}", Conv(out, kernel=3, norm=False, bias=True))
        net.pool(kernel=2)
    return net.classifier(4096, 4096, _CLASSES)


# Configurations A, D and E, without batch normalisation (arXiv:1409.1556, table 1).
vgg11 = partial(_vgg, 1, 1, 2, 2, 2)
vgg16 = partial(_vgg, 2, 2, 3, 3, 3)
vgg19 = partial(_vgg, 2, 2, 4, 4, 4)


def _resnet(blocks: tuple[int, ...], bottleneck: bool, widening: int = 1) -> tuple[Operator, ...]:
    """A ResNet with this many blocks in each stage."""
    net = _Net()
    net.conv("conv1", Conv(64, kernel=7, stride=2))
    net.pool(kernel=3, padding=1)
    for stage, count in enumerate(blocks):
        width = 64 * 2**stage
        for block in range(count):
            stride = 2 if stage > 0 and block == 0 else 1
            out = 4 * width if bottleneck else width
            branch = _branch(width * widening, out, stride, bottleneck)
            _residual(net, f"layer{stage + 1}.{block}", branch, stride)
    net.pool_to(side=1)
    return net.classifier(_CLASSES)


# Basic blocks of two 3 x 3 convolutions, or bottleneck blocks (arXiv:1512.03385, table 1). The
# latter are v1.5: the stride of a block is in its 3 x 3 convolution.
resnet18 = partial(_resnet, (2, 2, 2, 2), bottleneck=False)
resnet50 = partial(_resnet, (3, 4, 6, 3), bottleneck=True)
resnet101 = partial(_resnet, (3, 4, 23, 3), bottleneck=True)
resnet152 = partial(_resnet, (3, 8, 36, 3), bottleneck=True)
# WideResNet-101-2: inner convolutions are twice as wide (arXiv:1605.07146).
wide_resnet101 = partial(_resnet, (3, 4, 23, 3), bottleneck=True, widening=2)


def _branch(inner: int, out: int, stride: int, bottleneck: bool) -> list[Conv]:
    """The convolutions of one residual block."""
    if bottleneck:
        return [Conv(inner, 1), Conv(inner, 3, stride), Conv(out, 1)]
    return [Conv(inner, 3, stride), Conv(out, 3)]


def _residual(net: _Net, name: str, branch: list[Conv], stride: int) -> None:
    """Append a residual block, with a shortcut convolution if the block changes the shape."""
    entry = net.image
    for number, conv in enumerate(branch, 1):
        net.conv(f"{name}.conv{number}", conv)
    if net.image != entry:
        shortcut = Conv(net.image.channels, kernel=1, stride=stride)
        net.operators.append(shortcut.operator(f"{name}.downsample", entry))


# Table 1 of arXiv:1905.02244: kernel, expanded channels, output channels,
# squeeze-and-excite, stride.
_MOBILENET_V3_LARGE = (
    (3, 16, 16, False, 1),
    (3, 64, 24, False, 2),
    (3, 72, 24, False, 1),
    (5, 72, 40, True, 2),
    (5, 120, 40, True, 1),
    (5, 120, 40, True, 1),
    (3, 240, 80, False, 2),
    (3, 200, 80, False, 1),
    (3, 184, 80, False, 1),
    (3, 184, 80, False, 1),
    (3, 480, 112, True, 1),
    (3, 672, 112, True, 1),
    (5, 672, 160, True, 2),
    (5, 960, 160, True, 1),
    (5, 960, 160, True, 1),
)


def mobilenetv3_large() -> tuple[Operator, ...]:
    """MobileNetV3-Large (arXiv:1905.02244)."""
    net = _Net()
    net.conv("conv1", Conv(16, kernel=3, stride=2))
    for number, row in enumerate(_MOBILENET_V3_LARGE, start=1):
        _inverted_residual(net, f"block{number}", *row)
    net.conv("conv2", Conv(960, kernel=1))
    net.pool_to(side=1)
    return net.classifier(1280, _CLASSES)


def _inverted_residual(
    net: _Net, name: str, kernel: int, expanded: int, out: int, squeeze: bool, stride: int
) -> None:
    """Append a block of MobileNetV3: expand, depthwise, squeeze-and-excite if asked, project."""
    if expanded != net.image.channels:
        net.conv(f"{name}.expand", Conv(expanded, kernel=1))
    net.conv(f"{name}.depthwise", Conv(expanded, kernel, stride, groups=expanded))
    if squeeze:
        narrow = _multiple_of_8(expanded // 4)
        pooled = Image(expanded, side=1)
        reduce = Conv(narrow, kernel=1, norm=False, bias=True)
        restore = Conv(expanded, kernel=1, norm=False, bias=True)
        net.operators.append(reduce.operator(f"{name}.squeeze1", pooled))
        net.operators.append(restore.operator(f"{name}.squeeze2", reduce.output(pooled)))
    net.conv(f"{name}.project", Conv(out, kernel=1))


def _multiple_of_8(channels: int) -> int:
    """The nearest multiple of 8, or the next one if that is more than a tenth below `channels`.

    This is the rule in the code of arXiv:1905.02244.
    """
    nearest = max(8, (channels + 4) // 8 * 8)
    return nearest + 8 if nearest < 0.9 * channels else nearest
