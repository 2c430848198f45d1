"""An iteration of a job whose model is divided along several axes, and how its GPUs are divided.

The layers of a workload are those of one microbatch, in the order of the model. `Staged` says which
of them lie on which stage, and how the stages run them. `../stage_programs.py` makes the nodes.

Chunk c of a model lies on stage c mod p of p stages. With one chunk per stage, chunks are stages.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from artist.errors import DivisionError


class Schedule(StrEnum):
    """In which order a stage runs the passes of its microbatches.

    - `gpipe`: all forward passes, then all backward passes (arXiv:1811.06965).
    - `1f1b`: as many forward passes as there are stages behind, then a forward and a backward pass
      in turn (arXiv:2006.09503, section 2.2).
    - `interleaved`: as `1f1b`, but a stage holds several **chunks** of the model. It runs one chunk
      for as many microbatches as there are stages, then the next chunk (arXiv:2104.04473,
      section 2.2).
    """

    ONE_F_ONE_B = "1f1b"
    GPIPE = "gpipe"
    INTERLEAVED = "interleaved"


class Pass(NamedTuple):
    """A forward or backward pass of a microbatch through a chunk of the model."""

    forward: bool
    microbatch: int
    chunk: int


def passes(
    schedule: Schedule, stage: int, stages: int, chunks: int, microbatches: int
) -> list[Pass]:
    """The passes of a stage, in order. The model has `chunks` chunks, a multiple of `stages`."""
    held = chunks // stages
    total = held * microbatches
    forward = [_nth(True, n, stage, stages, held) for n in range(total)]
    backward = [_nth(False, n, stage, stages, held) for n in range(total)]
    match schedule:
        case Schedule.GPIPE:
            ahead = total
        case Schedule.ONE_F_ONE_B:
            ahead = stages - stage - 1
        case Schedule.INTERLEAVED:
            ahead = 2 * (stages - stage - 1) + (held - 1) * stages
    ahead = min(ahead, total)
    order = forward[:ahead]
    for one, other in zip(forward[ahead:], backward, strict=False):
        order += (one, other)
    return order + backward[total - ahead :]


def _nth(forward: bool, number: int, stage: int, stages: int, held: int) -> Pass:
    """Pass `number` of a stage: chunk by chunk, for as many microbatches as there are stages."""
    if held == 1:
        return Pass(forward, number, stage)
    round_, place = divmod(number, stages * held)
    chunk, within = divmod(place, stages)
    chunk = chunk if forward else held - 1 - chunk
    return Pass(forward, round_ * stages + within, chunk * stages + stage)


class Axis(StrEnum):
    """An axis along which a job is divided. Every GPU has a place on each of them."""

    TENSOR = "tensor"
    CONTEXT = "context"
    DATA = "data"
    PIPELINE = "pipeline"


INNERMOST_FIRST = (Axis.TENSOR, Axis.CONTEXT, Axis.DATA, Axis.PIPELINE)
"""The usual order of ranks (arXiv:2407.21783, section 3.3.2, with pipeline and data exchanged as in
Megatron-LM): tensor groups send most, and so lie innermost."""

BEST_ORDER = "best"


def axes_of_order(text: str) -> tuple[Axis, ...]:
    """The axes of an order of ranks, innermost first: `tensor-data-pipeline`; none for `best`.

    Raises:
        ValueError: no axis, or one twice.
    """
    if text == BEST_ORDER:
        return ()
    axes = tuple(Axis(name) for name in text.split("-"))
    if len(set(axes)) < len(axes):
        raise ValueError(text)
    return axes


@dataclass(frozen=True, slots=True)
class Axes:
    """The sizes of the axes. The GPUs that the others leave are the `data` axis.

    `data` is None if any number of replicas is right. `expert` is the number of GPUs over which the
    experts of a layer are spread: the innermost ones of a stage. If it is `implied` by the model,
    it is one GPU for each expert, or fewer if a stage has fewer (`spread.py`). `order` is the order
    of ranks, innermost axis first. An empty order means the best one for the placement among those
    with `tensor` innermost.
    """

    tensor: int = 1
    context: int = 1
    pipeline: int = 1
    expert: int = 1
    data: int | None = None
    order: tuple[Axis, ...] = ()
    implied: bool = False

    @property
    def of_replica(self) -> int:
        """GPUs of one replica of the model."""
        return self.tensor * self.context * self.pipeline

    def text(self) -> str:
        """The sizes above 1, as in `tensor=8, pipeline=4`, without what is implied."""
        names = ("tensor", "context", "pipeline", *(() if self.implied else ("expert",)))
        shown = [f"{name}={getattr(self, name)}" for name in names if getattr(self, name) > 1]
        return ", ".join(shown) or "one GPU per replica"


def sizes_of(axes: Axes, gpus: int) -> dict[Axis, int]:
    """The size of each axis of a job of this many GPUs.

    Raises:
        DivisionError: the axes do not multiply to the number of GPUs, or the GPUs over which
            experts are spread do not divide those of a stage.
    """
    replicas = gpus // axes.of_replica
    if gpus % axes.of_replica or axes.data not in (None, replicas):
        raise DivisionError(_misfit(axes, gpus))
    of_stage = gpus // axes.pipeline
    if of_stage % axes.expert and not axes.implied:
        raise DivisionError(
            f"experts are spread over {axes.expert} GPUs, and a stage has {of_stage}; set the "
            f"model's expert to {math.gcd(axes.expert, of_stage)}, or give the job other GPUs"
        )
    return {
        Axis.TENSOR: axes.tensor,
        Axis.CONTEXT: axes.context,
        Axis.DATA: replicas,
        Axis.PIPELINE: axes.pipeline,
    }


def _misfit(axes: Axes, gpus: int) -> str:
    """Why axes do not divide a number of GPUs, and the nearest sizes that would."""
    of_replica, text = axes.of_replica, axes.text()
    if axes.data is not None:
        instead = "" if gpus % of_replica else f", such as data={gpus // of_replica}"
        return (
            f"{text}, data={axes.data} do not multiply to {gpus} GPUs; give the job "
            f"{of_replica * axes.data} GPUs, or axes that multiply to {gpus}{instead}"
        )
    sizes = [gpus - gpus % of_replica, gpus - gpus % of_replica + of_replica]
    products = [
        next(size for size in range(min(of_replica, gpus), 0, -1) if gpus % size == 0),
        *(size for size in range(of_replica, gpus + 1) if gpus % size == 0),
    ]
    return (
        f"{text} {'do' if ',' in text else 'does'} not divide {gpus} GPUs; give the job "
        f"{_either(sizes)} GPUs, or axes that multiply to {_either(products[:2])}"
    )


def _either(sizes: Iterable[int]) -> str:
    return " or ".join(str(size) for size in sizes if size)


class Sharded(StrEnum):
    """What replicas share instead of each holding it whole (ZeRO, arXiv:1910.02054).

    - `no`: nothing. The gradients of a layer are all-reduced after the last microbatch.
    - `zero1`: optimizer states. Gradients are reduce-scattered after the last microbatch, and
      weights are gathered before the first one.
    - `zero2`: gradients too. They are reduce-scattered after every microbatch.
    - `zero3`: weights too. They are gathered before each pass.
    """

    NO = "no"
    ZERO1 = "zero1"
    ZERO2 = "zero2"
    ZERO3 = "zero3"


RECOMPUTE = ("no", "selective", "full")
"""What the backward pass computes again (`../divide.py`)."""

GRADIENTS = ("deferred", "eager")
"""When the gradients of a pass are sent: after the pass's message to the next stage, or as soon as
they are computed. In this model a GPU sends one thing at a time, so the next stage waits for eager
gradients too. On real GPUs, messages have a stream of their own."""

DISPATCH = ("expert", "machine")
"""What a token is sent to: each of its experts, as in an all-to-all of NCCL, or each machine that
has some of them, where it is copied, as DeepEP does (arXiv:2412.19437, section 3.2.2)."""

OVERLAP = ("no", "experts")
"""What the computation of another microbatch hides: with `experts`, the all-to-alls of experts, as
if the passes of two microbatches were merged (arXiv:2412.19437, section 3.2.1)."""

PREFETCH_ALL = -1
"""Weights are gathered as early as the order of collectives allows."""


@dataclass(frozen=True, slots=True)
class Staged:
    """How the layers of a workload are divided into stages, and how these run.

    `chunks[c][u]` is the number of layers in unit u of chunk c. A unit is a block, the embeddings
    or the head. With `sharded`, its weights are gathered and its gradients scattered together.
    Chunk c lies on stage c mod `axes.pipeline`. `border_bytes` is what a GPU sends to the next
    stage for one microbatch. `prefetch` is how many units ahead of the computation weights are
    gathered. With `recompute`, a backward pass begins with another forward pass of the blocks.
    """

    axes: Axes
    chunks: tuple[tuple[int, ...], ...]
    microbatches: int
    border_bytes: int
    schedule: Schedule = Schedule.ONE_F_ONE_B
    sharded: Sharded = Sharded.NO
    prefetch: int = 1
    recompute: bool = False
    eager: bool = False
    """Gradients do not wait for messages (`GRADIENTS`)."""
    copies: int = 1
    """Experts of a token that share one copy of it if they are in one machine (`DISPATCH`)."""
    hidden_ns: int = 0
    """How much of each all-to-all of experts is hidden (`OVERLAP`)."""
