"""Ways to divide a model among GPUs: from its operators to one iteration on one GPU.

With w bytes per element, P parameters of a layer and b samples of a model replica:

- data: every GPU holds all layers. The gradient of each layer, w P bytes, is all-reduced.
- FSDP: the layers of a block are sharded. The weights, w P bytes, are gathered before each forward
  and each backward pass, and the gradients are reduce-scattered after it (arXiv:2304.11277).
- tensor: t GPUs share each matrix. The outputs of ROW layers and the input gradients of COLUMN
  layers, w b outputs bytes, are all-reduced among the t GPUs (arXiv:1909.08053).
- stages: each of p stages holds a p-th of the blocks. An activation, w b outputs bytes, is sent
  to the next stage, and its gradient is sent back. With m microbatches, a stage is idle for
  (p - 1) / m of its compute time (arXiv:1811.06965). This idle time counts as compute time.
- experts: each GPU holds a share of the experts of a layer. Samples, w b outputs bytes, are sent to
  the experts and back, forward and backward: four all-to-alls (arXiv:2006.16668).

With stages, the iteration is that of an average GPU. It holds a p-th of the embeddings and of the
head, and the microbatches of its replica are sent as one message.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from artist.errors import ConfigError
from artist.workload.architectures.operators import Operator, Role
from artist.workload.gpus import Gpu
from artist.workload.layers import Collective, Degrees, Layer, Parallelism, Phase, Scope, Workload

# The operators of one transformer block have names that begin alike: `h3.qkv`, `layer3.query`.
_BLOCK = re.compile(r"(h|layer)\d+(?=\.)")


def data_parallel(
    name: str, operators: tuple[Operator, ...], batch_per_gpu: int, gpu: Gpu
) -> Workload:
    """Every GPU holds all layers, and the weight gradient of each layer is all-reduced.

    In training, the first layer has no input-gradient pass. Here it has the time of one, because
    ASTRA-sim itself leaves that pass out.
    """
    layers = []
    for operator in operators:
        compute_us = gpu.compute_us(operator, batch_per_gpu)
        gradient_bytes = gpu.width * operator.parameters
        reduced = Phase(compute_us, Collective.ALL_REDUCE, gradient_bytes)
        layers.append(Layer(operator.name, Phase(compute_us), Phase(compute_us), reduced))
    return Workload(name, Parallelism.DATA, tuple(layers))


def fully_sharded(
    name: str, operators: tuple[Operator, ...], batch_per_gpu: int, gpu: Gpu
) -> Workload:
    """FSDP: weights are gathered block by block when needed, and gradients are reduce-scattered."""
    layers = []
    for block, group in groupby(operators, key=block_of):
        members = list(group)
        compute_us = sum(gpu.compute_us(operator, batch_per_gpu) for operator in members)
        size = gpu.width * sum(operator.parameters for operator in members)
        gathered = Phase(compute_us, Collective.ALL_GATHER, size)
        scattered = Phase(compute_us, Collective.REDUCE_SCATTER, size)
        layers.append(Layer(block, gathered, gathered, scattered))
    return Workload(name, Parallelism.FSDP, tuple(layers))


@dataclass(frozen=True, slots=True)
class Division:
    """How a replica of a model is divided. It processes `batch` samples in an iteration."""

    batch: int
    degrees: Degrees
    microbatches: int = 1


def divided(name: str, operators: tuple[Operator, ...], division: Division, gpu: Gpu) -> Workload:
    """Tensor, pipeline and expert parallelism inside a replica, data parallelism across replicas.

    Raises:
        ConfigError: the number of blocks is not a multiple of the number of stages.
    """
    layers: list[Layer] = []
    for operator, share in _of_one_stage(name, operators, division.degrees.stages):
        layers += _layers(operator, share, division, gpu)
    if division.degrees.stages > 1:
        layers.append(_border(layers, operators, division, gpu))
    return Workload(name, Parallelism.LAYERWISE, tuple(layers), division.degrees)


def block_of(operator: Operator) -> str:
    """The block that an operator belongs to; its own name if it belongs to none."""
    match = _BLOCK.match(operator.name)
    return match[0] if match else operator.name


def _of_one_stage(
    name: str, operators: Sequence[Operator], stages: int
) -> list[tuple[Operator, float]]:
    """The operators of the average stage, each with the share of it that the stage holds."""
    if stages == 1:
        return [(operator, 1.0) for operator in operators]
    blocks = list(dict.fromkeys(block_of(x) for x in operators if _BLOCK.match(x.name)))
    if len(blocks) % stages:
        raise ConfigError(
            f"model {name!r}: {len(blocks)} blocks do not divide into {stages} stages; choose a "
            f"divisor of {len(blocks)}"
        )
    # All blocks are alike, so the first ones stand for those of any stage.
    kept = set(blocks[: len(blocks) // stages])
    return [
        (operator, 1.0 if block_of(operator) in kept else 1.0 / stages)
        for operator in operators
        if block_of(operator) in kept or not _BLOCK.match(operator.name)
    ]


def _layers(operator: Operator, share: float, division: Division, gpu: Gpu) -> list[Layer]:
    """The layer of an operator, with its all-to-all to or from the experts if it is an expert."""
    tensor = division.degrees.tensor if operator.role in (Role.COLUMN, Role.ROW) else 1
    compute_us = share * gpu.compute_us(_sliced(operator, tensor), division.batch)
    held = operator.parameters / tensor * share
    scope = Scope.DATA
    if operator.experts > 1:
        # If the job has a GPU for every expert, a GPU holds one expert, and reduces its gradient
        # among the replicas of that expert. A smaller job has no replicas of an expert.
        held, scope = held / operator.experts, Scope.REPLICA
    gradient = Phase(compute_us, Collective.ALL_REDUCE, round(gpu.width * held), scope)
    forward = backward = Phase(compute_us)
    if operator.role is Role.ROW and tensor > 1:
        forward = _summed(compute_us, operator.outputs, division, gpu)
    if operator.role is Role.COLUMN and tensor > 1:
        backward = _summed(compute_us, operator.inputs, division, gpu)
    layer = Layer(operator.name, forward, backward, gradient)
    if operator.role is Role.FIRST_OF_EXPERT:
        return [_all_to_all(f"{operator.name}.dispatch", operator.inputs, division, gpu), layer]
    if operator.role is Role.LAST_OF_EXPERT:
        return [layer, _all_to_all(f"{operator.name}.combine", operator.outputs, division, gpu)]
    return [layer]


def _sliced(operator: Operator, tensor: int) -> Operator:
    """The part of an operator that one of `tensor` GPUs computes; of experts, one."""
    return replace(
        operator,
        parameters=operator.parameters // tensor // operator.experts,
        macs=operator.macs // tensor,
        inputs=operator.inputs // (tensor if operator.role is Role.ROW else 1),
        outputs=operator.outputs // (tensor if operator.role is Role.COLUMN else 1),
    )


def _summed(compute_us: float, elements: int, division: Division, gpu: Gpu) -> Phase:
    """A pass whose result, this many elements per sample, is summed over the tensor group."""
    size = gpu.width * elements * division.batch
    return Phase(compute_us, Collective.ALL_REDUCE, size, Scope.TENSOR)


def _all_to_all(name: str, elements: int, division: Division, gpu: Gpu) -> Layer:
    """A layer without computation that sends samples to the experts or back."""
    size = gpu.width * elements * division.batch
    exchange = Phase(0.0, Collective.ALL_TO_ALL, size, Scope.EXPERT)
    return Layer(name, exchange, exchange, Phase())


def _border(
    layers: list[Layer], operators: Sequence[Operator], division: Division, gpu: Gpu
) -> Layer:
    """The border between stages: what is sent across it, and the idle time of the pipeline.

    A message from one stage to the next is written as an all-gather of twice its size between
    two GPUs, because each of the two sends half of an all-gather.
    """
    idle = (division.degrees.stages - 1) / division.microbatches
    elements = next(x.outputs for x in operators if _BLOCK.match(x.name) and x.role is Role.ROW)
    size = 2 * gpu.width * elements * division.batch

    def waiting(phases: list[Phase]) -> float:
        return idle * sum(phase.compute_us for phase in phases)

    sent = Collective.ALL_GATHER
    return Layer(
        "stage.border",
        Phase(waiting([x.forward for x in layers]), sent, size, Scope.STAGE),
        Phase(waiting([x.input_grad for x in layers]), sent, size, Scope.STAGE),
        Phase(waiting([x.weight_grad for x in layers])),
    )
