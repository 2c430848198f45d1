"""A model divided along several axes: from its operators to the layers of one microbatch.

With w bytes per element, b samples in a microbatch, and t, c and e GPUs along the axes `tensor`,
`context` and `expert`:

- tensor: as in `parallelism.py`. With sequence parallelism, every all-reduce of activations becomes
  a reduce-scatter and an all-gather, and the operators between them work on a t-th of the tokens
  (arXiv:2205.05198, section 4.2.2). Nothing is computed meanwhile. Megatron-LM overlaps the
  scatters with weight gradients. Modelled like that, published times of GPTs on A100s are met no
  better (1.2 % RMS after a fit instead of 1.1 %), and Llama 3 405B on 8,192 H100s is 13 % too fast
  instead of 8 %.
- context: every GPU has a c-th of the tokens. Keys and values are gathered before the attention,
  and their gradients are scattered (arXiv:2407.21783, section 3.3.2). The load is balanced.
- pipeline: the blocks are spread evenly over the stages. If their number does not divide, the
  middle chunks get one more: the first and the last chunk also have the embeddings and the head,
  and may have nothing else (arXiv:2407.21783, section 3.3.2).
- expert: a GPU holds an e-th of the experts of a layer. Tokens are sent to the experts and back.
- recompute: `selective` computes the attention scores again in the backward pass, `full` computes
  whole blocks again (arXiv:2205.05198, section 5).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from artist.errors import ConfigError
from artist.workload.architectures.operators import Operator, OperatorKind, Role
from artist.workload.division.spread import fitted_spread
from artist.workload.division.staged import (
    DISPATCH,
    GRADIENTS,
    OVERLAP,
    Axes,
    Schedule,
    Sharded,
    Staged,
)
from artist.workload.gpus import Gpu
from artist.workload.layers import Collective, Layer, Parallelism, Phase, Scope, Workload
from artist.workload.parallelism import block_of


@dataclass(frozen=True, slots=True)
class Plan:
    """How a job trains. A replica of the model processes `batch` samples in an iteration."""

    axes: Axes
    batch: int
    microbatches: int = 1
    schedule: Schedule = Schedule.ONE_F_ONE_B
    interleave: int = 1
    """Chunks of the model that a stage holds."""
    sharded: Sharded = Sharded.NO
    prefetch: int = 1
    recompute: str = "no"
    sequence_parallel: bool = False
    gradients: str = GRADIENTS[0]
    dispatch: str = DISPATCH[0]
    overlap: str = OVERLAP[0]


def divide(name: str, operators: tuple[Operator, ...], plan: Plan, gpu: Gpu) -> Workload:
    """One iteration of a model that is trained as planned.

    Raises:
        ConfigError: more stages than blocks.
    """
    groups = [list(group) for _, group in groupby(operators, key=block_of)]
    units = [_Unit(members, plan, gpu).layers() for members in groups]
    staged = Staged(
        plan.axes,
        _chunks(name, groups, [len(unit) for unit in units], plan),
        plan.microbatches,
        _border_bytes(operators, plan, gpu),
        plan.schedule,
        plan.sharded,
        plan.prefetch,
        plan.recompute == "full",
        plan.gradients == "eager",
        max(x.active for x in operators) if plan.dispatch == "machine" else 1,
        _computed_ns(units) if plan.overlap == "experts" else 0,
    )
    layers = tuple(layer for unit in units for layer in unit)
    return Workload(name, Parallelism.STAGED, layers, staged=staged)


def axes_of(workload: Workload) -> Axes:
    """The axes of a workload; without stages, they follow from its degrees."""
    if workload.staged is not None:
        return workload.staged.axes
    degrees = workload.degrees
    return Axes(degrees.tensor, pipeline=degrees.stages, expert=degrees.experts, implied=True)


def fitted(workload: Workload, gpus: int) -> Workload:
    """The workload with its implied spread of experts fitted to the job's GPUs.

    A workload with a stated spread is returned as it is. A GPU that holds several experts has the
    gradients of all of them. Compute times do not depend on the number of GPUs, so they stay.

    Raises:
        DivisionError: the axes do not multiply to the number of GPUs.
    """
    axes, staged = axes_of(workload), workload.staged
    if not axes.implied:
        return workload
    spread = fitted_spread(axes, gpus)
    share = axes.expert / spread
    layers = tuple(_holding(layer, share) for layer in workload.layers)
    if staged is None:
        return replace(workload, layers=layers, degrees=replace(workload.degrees, experts=spread))
    axes = replace(axes, expert=spread, implied=False)
    return replace(workload, layers=layers, staged=replace(staged, axes=axes))


def _chunks(
    name: str, groups: Sequence[Sequence[Operator]], layers: Sequence[int], plan: Plan
) -> tuple[tuple[int, ...], ...]:
    """The number of layers in each unit of each chunk."""
    chunks = plan.axes.pipeline * plan.interleave
    is_block = [block_of(group[0]) != group[0].name for group in groups]
    blocks = sum(is_block)
    # The embeddings and the head may fill a chunk each.
    ends = bool(blocks) and not is_block[0] and not is_block[-1]
    most = blocks + 2 if ends else max(blocks, 1)
    if chunks > most:
        others = ", the embeddings and the head" if ends else ""
        raise ConfigError(
            f"model {name!r}: {blocks} blocks{others} do not fill {plan.axes.pipeline} pipeline "
            f"stages{f' of {plan.interleave} chunks' if plan.interleave > 1 else ''}; choose at "
            f"most {most // plan.interleave} stages"
        )
    held = [blocks // chunks] * chunks
    # The remainder goes to the middle chunks first: the ends hold more than blocks.
    for number in [*range(1, chunks - 1), 0, chunks - 1][: blocks % chunks]:
        held[number] += 1
    made: list[list[int]] = [[] for _ in range(chunks)]
    chunk = seen = 0
    for size, block in zip(layers, is_block, strict=True):
        while block and seen == held[chunk]:
            chunk, seen = chunk + 1, 0
        seen += block
        blocks -= block
        # After the last block, `blocks` is 0: what follows is the head, which ends the last chunk.
        made[chunk if blocks or block else -1].append(size)
    return tuple(tuple(units) for units in made)


def _computed_ns(units: Sequence[Sequence[Layer]]) -> int:
    """Compute time of the blocks with experts per all-to-all, over both passes, in ns."""
    blocks = [unit for unit in units if any(map(_exchanges, unit))]
    phases = [y for unit in blocks for x in unit for y in (x.forward, x.input_grad, x.weight_grad)]
    exchanges = 2 * sum(_exchanges(layer) for unit in blocks for layer in unit)
    return round(1000 * sum(phase.compute_us for phase in phases) / exchanges)


def _exchanges(layer: Layer) -> bool:
    return layer.forward.scope is Scope.EXPERT


def _border_bytes(operators: Sequence[Operator], plan: Plan, gpu: Gpu) -> int:
    """What a GPU sends to the next stage for one microbatch: its part of the activations."""
    outputs = next((x.outputs for x in operators if x.role is Role.ROW), 0)
    parts = plan.axes.context * (plan.axes.tensor if plan.sequence_parallel else 1)
    return gpu.width * outputs * (plan.batch // plan.microbatches) // parts


class _Unit:
    """A block, the embeddings or the head: makes the layers of its operators."""

    def __init__(self, operators: Sequence[Operator], plan: Plan, gpu: Gpu) -> None:
        self._operators, self._plan, self._gpu = operators, plan, gpu
        self._samples = plan.batch // plan.microbatches

    def layers(self) -> list[Layer]:
        return [layer for operator in self._operators for layer in self._layers(operator)]

    def _layers(self, operator: Operator) -> list[Layer]:
        """The layers of an operator: its own, and those that only gather, scatter or exchange."""
        axes, name = self._plan.axes, operator.name
        layer = self._layer(operator)
        if operator.role is Role.FIRST_OF_EXPERT and axes.expert > 1:
            return [self._exchange(f"{name}.dispatch", operator.inputs), layer]
        if operator.role is Role.LAST_OF_EXPERT and axes.expert > 1:
            return [layer, self._exchange(f"{name}.combine", operator.outputs)]
        made = [layer]
        if axes.tensor > 1 and self._plan.sequence_parallel:
            if operator.role is Role.COLUMN:
                size = self._bytes(operator.inputs)
                made.insert(0, _pair(f"{name}.gather", Collective.ALL_GATHER, size, Scope.TENSOR))
            if operator.role is Role.ROW:
                size = self._bytes(operator.outputs)
                made.append(_pair(f"{name}.scatter", Collective.REDUCE_SCATTER, size, Scope.TENSOR))
        if axes.context > 1 and self._is_attention(operator):
            size = self._gpu.width * self._samples * self._keys_and_values() // axes.tensor
            made.insert(0, _pair(f"{name}.keys", Collective.ALL_GATHER, size, Scope.CONTEXT))
        return made

    def _layer(self, operator: Operator) -> Layer:
        """The layer of an operator, with its collectives of activations and its gradient."""
        plan, gpu = self._plan, self._gpu
        part = _part(operator, plan)
        us = gpu.compute_us(part, self._samples)
        forward = Phase(us)
        # A table has no input gradient.
        backward = Phase(0.0 if operator.kind is OperatorKind.LOOKUP else us)
        if plan.axes.tensor > 1 and not plan.sequence_parallel:
            if operator.role is Role.ROW:
                forward = _summed(us, self._bytes(operator.outputs))
            if operator.role is Role.COLUMN:
                backward = _summed(us, self._bytes(operator.inputs))
        if plan.recompute == "selective" and self._is_attention(operator):
            scores = replace(part, macs=part.macs - part.inputs * part.outputs // part.rows)
            scores = replace(scores, parameters=0, inputs=0, outputs=0)
            backward = replace(
                backward, compute_us=backward.compute_us + gpu.compute_us(scores, self._samples)
            )
        expert = operator.role in (Role.FIRST_OF_EXPERT, Role.LAST_OF_EXPERT)
        scope = Scope.REPLICA if expert else Scope.DATA
        gradient = Phase(us, Collective.ALL_REDUCE, gpu.width * part.parameters, scope)
        return Layer(operator.name, forward, backward, gradient)

    def _bytes(self, elements: int) -> int:
        return self._gpu.width * elements * self._samples // self._plan.axes.context

    def _exchange(self, name: str, elements: int) -> Layer:
        """A layer that sends tokens to the experts or back: each tensor rank sends its part."""
        size = self._bytes(elements) // self._plan.axes.tensor
        exchange = Phase(0.0, Collective.ALL_TO_ALL, size, Scope.EXPERT)
        return Layer(name, exchange, exchange, Phase())

    def _is_attention(self, operator: Operator) -> bool:
        return operator.name.endswith("attention.output")

    def _keys_and_values(self) -> int:
        """Elements of the keys and values of one sample."""
        total = 0
        for operator in self._operators:
            what = operator.name.rpartition(".")[2]
            if what == "qkv":
                queries = next(x.inputs for x in self._operators if self._is_attention(x))
                total += operator.outputs - queries
            elif what in ("key", "value") or operator.name.endswith("key_value.up"):
                total += operator.outputs
        return total


def _part(operator: Operator, plan: Plan) -> Operator:
    """The part of an operator that one GPU computes."""
    axes, role = plan.axes, operator.role
    tensor = axes.tensor
    tokens = axes.context
    held = inputs = outputs = 1
    if role in (Role.COLUMN, Role.ROW):
        held = tensor
        inputs, outputs = (tensor, 1) if role is Role.ROW else (1, tensor)
        macs = tensor
    else:
        # Operators that are not divided work on the rank's part of the tokens, if tokens are split.
        expert = role in (Role.FIRST_OF_EXPERT, Role.LAST_OF_EXPERT)
        held = axes.expert if expert else 1
        tokens *= tensor if expert or plan.sequence_parallel else 1
        macs = 1
    return replace(
        operator,
        parameters=operator.parameters // held,
        macs=operator.macs // (macs * tokens),
        inputs=operator.inputs // (inputs * tokens),
        outputs=operator.outputs // (outputs * tokens),
        rows=max(operator.rows // tokens, 1),
    )


def _summed(compute_us: float, size_bytes: int) -> Phase:
    return Phase(compute_us, Collective.ALL_REDUCE, size_bytes, Scope.TENSOR)


def _pair(name: str, forward: Collective, size_bytes: int, scope: Scope) -> Layer:
    """A layer that only gathers or scatters, and does the other of both in the backward pass."""
    both = {Collective.ALL_GATHER, Collective.REDUCE_SCATTER}
    (backward,) = both - {forward}
    return Layer(
        name,
        Phase(0.0, forward, size_bytes, scope),
        Phase(0.0, backward, size_bytes, scope),
        Phase(),
    )


def _holding(layer: Layer, share: float) -> Layer:
    """The layer on a GPU that holds `share` times as many experts."""
    gradient = layer.weight_grad
    if gradient.scope is not Scope.REPLICA:
        return layer
    held = replace(gradient, comm_bytes=round(share * gradient.comm_bytes))
    return replace(layer, weight_grad=held)
