"""Generative image networks, layer by layer: CycleGAN."""

from __future__ import annotations

from dataclasses import replace

from artist.workload.architectures.operators import Conv, Image, Operator


def cyclegan() -> tuple[Operator, ...]:
    """CycleGAN for images of 256 x 256 with 9 residual blocks (arXiv:1703.10593, appendix 7.2).

    Two generators and two discriminators. A sample is a pair of images. In a step it passes each
    generator three times (for the translated image, the cycle and the identity), and each
    discriminator three times (once in the generators' loss, and as a real and as a generated image
    in its own). Instance normalisations have no parameters.
    """
    return (
        *_generator("a_to_b"),
        *_generator("b_to_a"),
        *_discriminator("a"),
        *_discriminator("b"),
    )


_PASSES = 3


def _generator(name: str) -> list[Operator]:
    """Two layers that halve the side, the residual blocks, and two that double it again."""
    shapes = [
        ("in", Conv(64, kernel=7, norm=False, bias=True), Image(3, 256)),
        ("down1", _conv(128, stride=2), Image(64, 256)),
        ("down2", _conv(256, stride=2), Image(128, 128)),
        *((f"block{i // 2}.conv{i % 2 + 1}", _conv(256), Image(256, 64)) for i in range(18)),
        ("up1", _conv(128), Image(256, 128)),
        ("up2", _conv(64), Image(128, 256)),
        ("out", Conv(3, kernel=7, norm=False, bias=True), Image(64, 256)),
    ]
    return [_used(conv, f"generator.{name}.{layer}", image) for layer, conv, image in shapes]


def _discriminator(name: str) -> list[Operator]:
    """Convolutions of 4 x 4 that judge patches of 70 x 70. Before the last, an edge is padded."""
    widths = (64, 128, 256, 512)
    inputs = (Image(3, 256), Image(64, 128), Image(128, 64), Image(256, 32))
    shapes = [
        (Conv(width, kernel=4, stride=2, padding=1, norm=False, bias=True), image)
        for width, image in zip(widths, inputs, strict=True)
    ]
    shapes.append((Conv(1, kernel=4, padding=1, norm=False, bias=True), Image(512, 17)))
    return [
        _used(conv, f"discriminator.{name}.conv{number}", image)
        for number, (conv, image) in enumerate(shapes, 1)
    ]


def _conv(out: int, stride: int = 1) -> Conv:
    return Conv(out, kernel=3, stride=stride, norm=False, bias=True)


def _used(conv: Conv, name: str, image: Image) -> Operator:
    """The operator of a convolution that each sample passes `_PASSES` times."""
    once = conv.operator(name, image)
    return replace(
        once,
        macs=_PASSES * once.macs,
        inputs=_PASSES * once.inputs,
        outputs=_PASSES * once.outputs,
        rows=_PASSES,
    )
