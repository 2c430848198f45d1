"""The least memory that training a model takes on each GPU.

With P parameters held by a GPU and an element of w bytes:

    weights  w P     gradients  w P     optimizer states  k P / d

k is 12 in mixed precision, where Adam keeps fp32 weights, momentum and variance, and 4 in fp32,
where plain SGD keeps a momentum (Rajbhandari et al., *ZeRO*, arXiv:1910.02054, section 3.1). The d
GPUs that hold the same parameters share the states, whether the job says so or not, because ZeRO's
first stage needs no further communication (section 7.2.1). Its second stage shares gradients too,
and its third also weights. Transformers also keep activations (`activation_memory.py`). Gradients
have buffers of their own, as in DDP and Megatron. Other buffers and fragmentation come on top, so a
job that fits by this count may still not fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from artist.run.activation_memory import kept_bytes, under_way_bytes
from artist.units import counted
from artist.workload.divide import axes_of, fitted
from artist.workload.division.staged import Sharded, Staged
from artist.workload.gpus import MEMORY_GB, Precision, in_words
from artist.workload.layers import Layer, Parallelism, Scope, Workload
from artist.workload.models import settings, workload

_STATES_BYTES = {2: 12, 4: 4}
"""Bytes of optimizer states per parameter, by the bytes of an element."""


class TrainingMemory(NamedTuple):
    """Bytes on a GPU: `states` are weights, gradients and optimizer states."""

    states: float
    activations: float

    @property
    def total(self) -> float:
        """All bytes together."""
        return self.states + self.activations


def does_not_fit(model: str, gpus: int, kinds: Iterable[str]) -> str:
    """A clause if a model cannot train on `gpus` GPUs of any of these kinds; empty if it may.

    A GPU in the model's name wins over `kinds`, which are names of `GPU_NAMES`.
    """
    chosen = settings(model)
    kind = chosen.gpu or max(kinds, key=MEMORY_GB.__getitem__)
    samples = counted(chosen.batch // chosen.microbatches, "sample")
    held = least_memory(model, gpus)
    if held.total / 1e9 <= MEMORY_GB[kind]:
        return ""
    shared = "" if chosen.sharding is Sharded.ZERO3 else ", sharded=zero3"
    again = "" if chosen.recompute == "full" else "recompute=full, "
    return (
        f"weights, gradients, optimizer states and activations of {model} on "
        f"{counted(gpus, 'GPU')} take at least {held.total / 1e9:,.0f} GB of each "
        f"({held.activations / 1e9:,.0f} GB of activations, {samples} at a time), and "
        f"{in_words(kind)} has {MEMORY_GB[kind]} GB; divide the model further (tensor=, "
        f"pipeline={shared}), keep fewer activations ({again}microbatches=, batch=) or use more "
        "GPUs"
    )


def least_memory(model: str, gpus: int) -> TrainingMemory:
    """What a GPU of the fullest stage holds, on average, if `gpus` divide into the model's axes.

    Raises:
        ConfigError: the model is unknown.
    """
    iteration, width = fitted(workload(model), gpus), Precision(settings(model).precision).width
    stages = zip(_stages(iteration), _activations(model, iteration), strict=True)
    return max(
        (
            TrainingMemory(sum(_held_bytes(iteration, layer, width, gpus) for layer in stage), kept)
            for stage, kept in stages
        ),
        key=lambda held: held.total,
    )


def _activations(model: str, iteration: Workload) -> Iterator[float]:
    """The activations of each stage in bytes; without chunks, of an average stage as if first."""
    kept, staged = kept_bytes(model), iteration.staged
    if staged is None:
        stages = iteration.degrees.stages
        yield sum(kept.values()) / stages * min(stages, settings(model).microbatches)
        return
    blocks = [
        dict.fromkeys(layer.name.partition(".")[0] for layer in chunk)
        for chunk in _chunks(iteration.layers, staged)
    ]
    of_chunks = [sum(kept.get(name, 0.0) for name in names) for names in blocks]
    for stage in range(staged.axes.pipeline):
        yield under_way_bytes(staged, stage, of_chunks)


def _stages(iteration: Workload) -> Iterator[list[Layer]]:
    """The layers of each stage of a pipeline."""
    staged = iteration.staged
    if staged is None:
        yield list(iteration.layers)
        return
    chunks = list(_chunks(iteration.layers, staged))
    for stage in range(staged.axes.pipeline):
        yield [layer for chunk in chunks[stage :: staged.axes.pipeline] for layer in chunk]


def _chunks(layers: tuple[Layer, ...], staged: Staged) -> Iterator[tuple[Layer, ...]]:
    start = 0
    for units in staged.chunks:
        yield layers[start : start + sum(units)]
        start += sum(units)


def _held_bytes(iteration: Workload, layer: Layer, width: int, gpus: int) -> float:
    """Bytes that a GPU holds for a layer, whose gradients have as many bytes as its weights."""
    weights = float(layer.weight_grad.comm_bytes)
    sharers = _sharers(iteration, layer.weight_grad.scope, gpus)
    sharded = Sharded.ZERO3 if iteration.parallelism is Parallelism.FSDP else Sharded.NO
    if iteration.staged is not None:
        sharded = iteration.staged.sharded
    states = weights / width * _STATES_BYTES[width] / sharers
    gradients = weights / (sharers if sharded in (Sharded.ZERO2, Sharded.ZERO3) else 1)
    held = weights / (sharers if sharded is Sharded.ZERO3 else 1)
    return held + gradients + states


def _sharers(iteration: Workload, scope: Scope, gpus: int) -> int:
    """The number of GPUs that hold the same parameters."""
    axes = axes_of(iteration)
    return gpus // axes.pipeline // (axes.expert if scope is Scope.REPLICA else axes.tensor)
