"""GoogLeNet, Inception-v3 and Inception-v4, layer by layer, for ImageNet (1000 classes).

A block sends its input through branches and joins the channels of their outputs. Here branches
follow one another. Every convolution has a batch normalisation and no bias.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from artist.workload.architectures.operators import Conv, Image, Operator, linear

Branch: TypeAlias = tuple[Conv | tuple[Conv, ...], ...]
"""Convolutions one after the other. Those of an inner tuple share an input: the branch forks."""

_CLASSES = 1000


class _InceptionNet:
    """A network built block by block. `image` is the shape of the last block's output."""

    def __init__(self, side: int) -> None:
        self.image = Image(channels=3, side=side)
        self.operators: list[Operator] = []

    def block(self, *branches: Branch, pooled: bool = False) -> None:
        """Branches side by side; `pooled` adds the input itself, pooled to half its side."""
        number = len({operator.name.partition(".")[0] for operator in self.operators})
        outputs = [
            image
            for place, branch in enumerate(branches)
            for image in self.branch(f"block{number}.{place}", branch, self.image)
        ]
        if pooled:
            outputs.append(self.image.reduced(kernel=3, stride=2, padding=0))
        self.image = replace(outputs[0], channels=sum(image.channels for image in outputs))

    def branch(self, name: str, branch: Branch, image: Image) -> list[Image]:
        """Append a branch. Returns the shapes of its outputs."""
        outputs = [image]
        for number, step in enumerate(branch):
            (entry,) = outputs
            fork = step if isinstance(step, tuple) else (step,)
            for place, conv in enumerate(fork):
                end = f"{number}{'ab'[place] if len(fork) > 1 else ''}"
                self.operators.append(conv.operator(f"{name}.conv{end}", entry))
            outputs = [conv.output(entry) for conv in fork]
        return outputs

    def pool(self, padding: int = 0) -> None:
        """Halve the side, by a window of 3 x 3."""
        self.image = self.image.reduced(kernel=3, stride=2, padding=padding)

    def classified(self) -> tuple[Operator, ...]:
        """All layers of the network, ended by a fully connected one."""
        return (*self.operators, linear("fc", self.image.channels, _CLASSES))


def _one(out: int) -> Conv:
    return Conv(out, kernel=1)


def _three(out: int) -> Conv:
    return Conv(out, kernel=3)


def _inner(out: int, stride: int = 1) -> Conv:
    """3 x 3 without padding, which narrows the image."""
    return Conv(out, kernel=3, stride=stride, padding=0)


def _wide(out: int, width: int = 7) -> Conv:
    return Conv(out, kernel=1, width=width)


def _high(out: int, height: int = 7) -> Conv:
    return Conv(out, kernel=height, width=1)


# Table 1 of arXiv:1409.4842, per stage: the 1 x 1, the reduction to and the 3 x 3, the reduction to
# and the 5 x 5, and the projection of the pooled input.
_GOOGLENET = (
    ((64, 96, 128, 16, 32, 32), (128, 128, 192, 32, 96, 64)),
    (
        (192, 96, 208, 16, 48, 64), (160, 112, 224, 24, 64, 64), (128, 128, 256, 24, 64, 64),
        (112, 144, 288, 32, 64, 64), (256, 160, 320, 32, 128, 128),
    ),
    ((256, 160, 320, 32, 128, 128), (384, 192, 384, 48, 128, 128)),
)  # fmt: skip


def googlenet() -> tuple[Operator, ...]:
    """GoogLeNet for images of 224 x 224 (arXiv:1409.4842), without auxiliary classifiers.

    As in torchvision, it has batch normalisations, and 3 x 3 where the paper has 5 x 5.
    """
    net = _InceptionNet(side=224)
    net.block((Conv(64, kernel=7, stride=2),))
    net.pool(padding=1)
    net.block((_one(64), _three(192)))
    for stage in _GOOGLENET:
        net.pool(padding=1)
        for one, to_third, third, to_fifth, fifth, pooled in stage:
            net.block(
                (_one(one),), (_one(to_third), _three(third)), (_one(to_fifth), _three(fifth)),
                (_one(pooled),),
            )  # fmt: skip
    return net.classified()


def inception_v3() -> tuple[Operator, ...]:
    """Inception-v3 for images of 299 x 299 (arXiv:1512.00567), with the auxiliary classifier.

    The widths are torchvision's, which are those of the authors' release.
    """
    net = _InceptionNet(side=299)
    net.block((_inner(32, stride=2), _inner(32), _three(64)))
    net.pool()
    net.block((_one(80), _inner(192)))
    net.pool()
    for pooled in (32, 64, 64):
        net.block(
            (_one(64),), (_one(48), Conv(64, kernel=5)), (_one(64), _three(96), _three(96)),
            (_one(pooled),),
        )  # fmt: skip
    net.block((_inner(384, stride=2),), (_one(64), _three(96), _inner(96, stride=2)), pooled=True)
    for c in (128, 160, 160, 192):
        net.block(
            (_one(192),), (_one(c), _wide(c), _high(192)),
            (_one(c), _high(c), _wide(c), _high(c), _wide(192)), (_one(192),),
        )  # fmt: skip
    auxiliary = net.image.reduced(kernel=5, stride=3, padding=0)
    net.branch("auxiliary", (_one(128), Conv(768, kernel=5, padding=0)), auxiliary)
    net.operators.append(linear("auxiliary.fc", 768, _CLASSES))
    net.block(
        (_one(192), _inner(320, stride=2)),
        (_one(192), _wide(192), _high(192), _inner(192, stride=2)), pooled=True,
    )  # fmt: skip
    fork = (_wide(384, width=3), _high(384, height=3))
    for _ in range(2):
        net.block((_one(320),), (_one(384), fork), (_one(448), _three(384), fork), (_one(192),))
    return net.classified()


def inception_v4() -> tuple[Operator, ...]:
    """Inception-v4 for images of 299 x 299 (arXiv:1602.07261, figures 3 to 9)."""
    net = _InceptionNet(side=299)
    net.block((_inner(32, stride=2), _inner(32), _three(64)))
    net.block((_inner(96, stride=2),), pooled=True)
    net.block((_one(64), _inner(96)), (_one(64), _wide(64), _high(64), _inner(96)))
    net.block((_inner(192, stride=2),), pooled=True)
    for _ in range(4):
        net.block(
            (_one(96),), (_one(64), _three(96)), (_one(64), _three(96), _three(96)), (_one(96),)
        )
    net.block(
        (_inner(384, stride=2),), (_one(192), _three(224), _inner(256, stride=2)), pooled=True
    )
    for _ in range(7):
        net.block(
            (_one(384),), (_one(192), _wide(224), _high(256)),
            (_one(192), _high(192), _wide(224), _high(224), _wide(256)), (_one(128),),
        )  # fmt: skip
    net.block(
        (_one(192), _inner(192, stride=2)),
        (_one(256), _wide(256), _high(320), _inner(320, stride=2)), pooled=True,
    )  # fmt: skip
    fork = (_wide(256, width=3), _high(256, height=3))
    for _ in range(3):
        net.block(
            (_one(256),), (_one(384), fork), (_one(384), _high(448, 3), _wide(512, 3), fork),
            (_one(256),),
        )  # fmt: skip
    return net.classified()
