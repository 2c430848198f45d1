"""From operators to one iteration on one GPU, for each way of dividing the work.

With `width` bytes per element, P parameters and b samples of a model replica:

    data       every GPU holds all layers; each layer's gradient, width P, is all-reduced
    FSDP       layers (blocks) are sharded: width P is gathered before each forward and each
               backward, and reduce-scattered after (arXiv:2304.11277)
    tensor     t GPUs share each matrix; the outputs of ROW layers and the input gradients of
               COLUMN layers, width b outputs, are all-reduced among them (arXiv:1909.08053)
    stages     p stages hold a p-th of the blocks each; width b outputs goes on to the next
               stage and back; m microbatches leave (p - 1) / m of the compute idle
               (arXiv:1811.06965), which counts as compute
    experts    each GPU holds a share of a layer's experts; width b outputs goes to them and
               back, forward and backward: four all-to-alls (arXiv:2006.16668)

With stages, a GPU stands for the average one: embeddings and head count a p-th, and a
replica's microbatches are sent as one message.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from artist.errors import ConfigError
from artist.workload.gpus import Gpu
from artist.workload.layers import (
    Collective,
    Degrees,
    Layer,
    Parallelism,
    Phase,
    Scope,
    Workload,
)
from artist.workload.operators import Operator, Role

_BLOCK = re.compile(r"(h|layer)\d+(?=\.)")


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
        gradient_bytes = gpu.width * operator.parameters
        reduced = Phase(compute_us, Collective.ALL_REDUCE, gradient_bytes)
        layers.append(Layer(operator.name, Phase(compute_us), Phase(compute_us), reduced))
    return Workload(name, Parallelism.DATA, tuple(layers))


def fully_sharded(
    name: str, operators: tuple[Operator, ...], batch_per_gpu: int, gpu: Gpu
) -> Workload:
    """Weights are gathered block by block when they are needed, gradients scattered."""
    layers = []
    for unit, found in groupby(operators, key=_unit):
        members = list(found)
        compute_us = sum(gpu.compute_us(operator, batch_per_gpu) for operator in members)
        size = gpu.width * sum(operator.parameters for operator in members)
        gathered = Phase(compute_us, Collective.ALL_GATHER, size)
        scattered = Phase(compute_us, Collective.REDUCE_SCATTER, size)
        layers.append(Layer(unit, gathered, gathered, scattered))
    return Workload(name, Parallelism.FSDP, tuple(layers))


@dataclass(frozen=True, slots=True)
class Division:
    """How a replica of a model is divided. `batch` samples pass it in an iteration."""

    batch: int
    degrees: Degrees
    microbatches: int = 1


def divided(name: str, operators: tuple[Operator, ...], division: Division, gpu: Gpu) -> Workload:
    """Tensor, pipeline and expert parallelism, data-parallel across replicas.

    Raises:
        ConfigError: the blocks do not divide into the stages.
    """
    layers: list[Layer] = []
    for operator, share in _of_one_stage(name, operators, division.degrees.stages):
        layers += _layers(operator, share, division, gpu)
    if division.degrees.stages > 1:
        layers.append(_border(layers, operators, division, gpu))
    return Workload(name, Parallelism.LAYERWISE, tuple(layers), division.degrees)


def _unit(operator: Operator) -> str:
    """The block an operator belongs to, or its own name."""
    match = _BLOCK.match(operator.name)
    return match[0] if match else operator.name


def _of_one_stage(
    name: str, operators: Sequence[Operator], stages: int
) -> list[tuple[Operator, float]]:
    """Operators of the average stage with the share of each that it holds."""
    if stages == 1:
        return [(operator, 1.0) for operator in operators]
    blocks = list(dict.fromkeys(_unit(x) for x in operators if _BLOCK.match(x.name)))
    if len(blocks) % stages:
        raise ConfigError(
            f"model {name!r}: {len(blocks)} blocks do not divide into {stages} stages; choose a "
            f"divisor of {len(blocks)}"
        )
    kept = set(blocks[: len(blocks) // stages])
    return [
        (operator, 1.0 if _unit(operator) in kept else 1.0 / stages)
        for operator in operators
        if _unit(operator) in kept or not _BLOCK.match(operator.name)
    ]


def _layers(operator: Operator, share: float, division: Division, gpu: Gpu) -> list[Layer]:
    """The layer of an operator, between its journeys to the experts and back."""
    tensor = division.degrees.tensor if operator.role in (Role.COLUMN, Role.ROW) else 1
    compute_us = share * gpu.compute_us(_sliced(operator, tensor), division.batch)
    held = operator.parameters / tensor * share
    scope = Scope.DATA
    if operator.role is Role.EXPERT:
        # A GPU holds one expert where the job has a GPU for each, and reduces it among
        # the replicas of that expert; in a smaller job there are none.
        held, scope = held / operator.experts, Scope.REPLICA
    gradient = Phase(compute_us, Collective.ALL_REDUCE, round(gpu.width * held), scope)
    summed = Phase(compute_us)
    forward = backward = summed
    if operator.role is Role.ROW and tensor > 1:
        forward = _summed(compute_us, operator.outputs, division, gpu)
    if operator.role is Role.COLUMN and tensor > 1:
        backward = _summed(compute_us, operator.inputs, division, gpu)
    layer = Layer(operator.name, forward, backward, gradient)
    if operator.role is not Role.EXPERT:
        return [layer]
    if operator.outputs > operator.inputs:
        return [_journey(f"{operator.name}.dispatch", operator.inputs, division, gpu), layer]
    return [layer, _journey(f"{operator.name}.combine", operator.outputs, division, gpu)]


def _sliced(operator: Operator, tensor: int) -> Operator:
    return replace(
        operator,
        parameters=operator.parameters // tensor // operator.experts,
        macs=operator.macs // tensor,
        inputs=operator.inputs // (tensor if operator.role is Role.ROW else 1),
        outputs=operator.outputs // (tensor if operator.role is Role.COLUMN else 1),
    )


def _summed(compute_us: float, elements: int, division: Division, gpu: Gpu) -> Phase:
    size = gpu.width * elements * division.batch
    return Phase(compute_us, Collective.ALL_REDUCE, size, Scope.TENSOR)


def _journey(name: str, elements: int, division: Division, gpu: Gpu) -> Layer:
    size = gpu.width * elements * division.batch
    travel = Phase(0.0, Collective.ALL_TO_ALL, size, Scope.EXPERT)
    return Layer(name, travel, travel, Phase())


def _border(
    layers: list[Layer], operators: Sequence[Operator], division: Division, gpu: Gpu
) -> Layer:
    """What passes between stages, and the time a stage waits for the pipeline to fill.

    Of an all-gather between two GPUs each sends its half: one message, as a stage sends
    its output on.
    """
    idle = (division.degrees.stages - 1) / division.microbatches
    width = next(x.outputs for x in operators if _BLOCK.match(x.name) and x.role is Role.ROW)
    size = 2 * gpu.width * width * division.batch

    def waiting(phases: list[Phase]) -> float:
        return idle * sum(phase.compute_us for phase in phases)

    sent = Collective.ALL_GATHER
    return Layer(
        "stage.border",
        Phase(waiting([x.forward for x in layers]), sent, size, Scope.STAGE),
        Phase(waiting([x.input_grad for x in layers]), sent, size, Scope.STAGE),
        Phase(waiting([x.weight_grad for x in layers])),
    )
