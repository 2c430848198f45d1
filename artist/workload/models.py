"""The catalogue of models: from an architecture to one training iteration.

A row names how the network is built and the batch on each GPU. Per layer and
GPU, with `macs` multiply-accumulates per sample,

    forward = input gradient = weight gradient = 2 macs batch / (peak efficiency)

and the weight gradient, 4 bytes per parameter (fp32), is all-reduced.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from artist.errors import UnknownNameError
from artist.workload import convnets, transformers
from artist.workload.layers import Collective, Layer, Parallelism, Phase, Workload
from artist.workload.operators import Kind, Operator

BYTES_PER_PARAMETER = 4  # fp32


@dataclass(frozen=True, slots=True)
class Gpu:
    """What sets compute times: the peak and the share of it that training reaches."""

    name: str
    peak_flops: float
    efficiency: Mapping[Kind, float]

    def compute_us(self, operator: Operator, batch: int) -> float:
        """Microseconds of one pass over one batch."""
        flops = 2 * operator.macs * batch
        return flops / (self.peak_flops * self.efficiency[operator.kind]) * 1e6


# Peak: NVIDIA A100 data sheet, TF32 without sparsity, 156 TFLOP/s. Shares:
# single-GPU TF32 training throughput that NVIDIA's DeepLearningExamples publish
# for the A100-80GB, times the FLOPs counted here: ResNet-50 v1.5 at 938 images/s
# is 23.0 TFLOP/s, BERT-large on SQuAD at 61.5 sequences/s is 45.4 TFLOP/s.
# Depthwise convolutions and small batches reach less, which this model leaves out.
A100 = Gpu(
    name="NVIDIA A100, TF32",
    peak_flops=156e12,
    efficiency=MappingProxyType({Kind.CONVOLUTION: 0.147, Kind.MATMUL: 0.291}),
)


@dataclass(frozen=True, slots=True)
class Model:
    """One row. `aliases` are other spellings, compared without case, `-`, `_` and spaces."""

    id: str
    summary: str
    paper: str
    build: Callable[[], tuple[Operator, ...]]
    batch_per_gpu: int
    aliases: tuple[str, ...] = ()


# Batches of the image models are those of torchvision's published recipes
# (references/classification, 8 GPUs); BERT's is the one of the trace's BERT jobs
# and of NVIDIA's SQuAD figures above.
_ROWS = (
    Model("alexnet", "AlexNet, images", "arXiv:1404.5997", convnets.alexnet, 32),
    Model("vgg11", "VGG11, images", "arXiv:1409.1556", convnets.vgg11, 32, ("vgg",)),
    Model("resnet18", "ResNet-18, images", "arXiv:1512.03385", convnets.resnet18, 32),
    Model("resnet50", "ResNet-50 v1.5, images", "arXiv:1512.03385", convnets.resnet50, 32),
    Model(
        "mobilenetv3",
        "MobileNetV3-Large, images",
        "arXiv:1905.02244",
        convnets.mobilenetv3_large,
        128,
        ("mobilenetv3large",),
    ),
    Model(
        "bert-large",
        "BERT-large uncased with embeddings and pooler, sequences of 384",
        "arXiv:1810.04805",
        transformers.bert_large,
        32,
        ("bert",),
    ),
)

catalogue: Mapping[str, Model] = MappingProxyType({row.id: row for row in _ROWS})


def _plain(name: str) -> str:
    return re.sub(r"[-_\s]", "", name).casefold()


_SPELLINGS = {_plain(name): row.id for row in _ROWS for name in (row.id, *row.aliases)}


def model_names() -> list[str]:
    """The ids of all models, in the order of the catalogue."""
    return list(catalogue)


def canonical(name: str) -> str:
    """The id that a trace's spelling stands for, e.g. `BERT large` for `bert-large`.

    Raises:
        UnknownNameError: no model has this name.
    """
    try:
        return _SPELLINGS[_plain(name)]
    except KeyError:
        remedy = "artist list models"
        raise UnknownNameError("model", name.casefold(), catalogue, remedy) from None


@cache
def workload(name: str) -> Workload:
    """One data-parallel training iteration of a model (any spelling) on an A100."""
    row = catalogue[canonical(name)]
    return data_parallel(row.id, row.build(), row.batch_per_gpu, A100)


def data_parallel(
    name: str, operators: tuple[Operator, ...], batch_per_gpu: int, gpu: Gpu
) -> Workload:
    """Every GPU holds all layers; each layer's weight gradient is all-reduced.

    The first layer has no input gradient in training. It carries the time of one
    all the same: ASTRA-sim leaves that pass out itself.
    """
    layers = []
    for operator in operators:
        compute_us = gpu.compute_us(operator, batch_per_gpu)
        gradient_bytes = BYTES_PER_PARAMETER * operator.parameters
        reduced = Phase(compute_us, Collective.ALL_REDUCE, gradient_bytes)
        layers.append(Layer(operator.name, Phase(compute_us), Phase(compute_us), reduced))
    return Workload(name, Parallelism.DATA, tuple(layers))


def parameters(name: str) -> int:
    """Trainable parameters of a model (any spelling)."""
    return sum(operator.parameters for operator in catalogue[canonical(name)].build())


@dataclass(frozen=True, slots=True)
class ModelSummary:
    """What a listing shows of a model."""

    id: str
    summary: str
    paper: str
    parameters: int
    layers: int
    batch_per_gpu: int


def summary(name: str) -> ModelSummary:
    """One line of the list of models."""
    row = catalogue[canonical(name)]
    layers = len(workload(row.id).layers)
    return ModelSummary(
        row.id, row.summary, row.paper, parameters(row.id), layers, row.batch_per_gpu
    )
