"""What each stage of a divided job computes and sends, whatever the network.

A pass of a microbatch through a chunk is a series of steps. A step computes, then its collective
runs. Only the weight gradient of the step is computed beside the collective; the next step waits
for both:

    forward    compute | collective of the output
    backward   input gradient | collective of the input gradient, beside it the weight gradient
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from artist.workload.division.staged import Pass, Sharded, Staged, passes
from artist.workload.layers import Collective, Layer, Phase, Scope, Workload

NS_PER_US = 1000

Request = tuple[Collective, int, Scope]
"""A collective, the size of its whole buffer in bytes, and which GPUs take part."""


@lru_cache(maxsize=64)
def alone_ns(workload: Workload) -> int:
    """How long an iteration takes if messages and collectives take no time."""
    staged, units = workload.staged, units_of(workload)
    assert staged is not None
    stages, last = staged.axes.pipeline, len(units) - 1
    left = [
        passes(staged.schedule, stage, stages, len(units), staged.microbatches)[::-1]
        for stage in range(stages)
    ]
    times = {
        (forward, chunk): _pass_ns(units[chunk], forward, recompute=staged.recompute)
        for chunk in range(len(units))
        for forward in (True, False)
    }
    now = [0] * stages
    done: dict[Pass, int] = {}
    while any(left):
        for stage, waiting in enumerate(left):
            while waiting:
                one = waiting[-1]
                before = _before(one, last)
                if before is not None and before not in done:
                    break
                waiting.pop()
                whole_ns, beside_ns = times[one.forward, one.chunk]
                start = max(now[stage], done[before] if before is not None else 0)
                now[stage] = start + whole_ns
                done[one] = now[stage] - beside_ns
    return max(now)


@lru_cache(maxsize=64)
def stage_compute_ns(workload: Workload) -> list[int]:
    """For how long a GPU of each stage computes in an iteration."""
    staged = workload.staged
    assert staged is not None
    computed_ns = [0] * staged.axes.pipeline
    for chunk, units in enumerate(units_of(workload)):
        for forward in (True, False):
            pass_ns, _ = _pass_ns(units, forward, recompute=staged.recompute)
            computed_ns[chunk % staged.axes.pipeline] += staged.microbatches * pass_ns
    return computed_ns


def _before(one: Pass, last_chunk: int) -> Pass | None:
    """The pass whose output a pass needs."""
    if one.forward:
        return one._replace(chunk=one.chunk - 1) if one.chunk else None
    if one.chunk == last_chunk:
        return one._replace(forward=True)
    return one._replace(chunk=one.chunk + 1)


def _pass_ns(units: Sequence[ModelUnit], forward: bool, *, recompute: bool) -> tuple[int, int]:
    """How long a pass computes in all, and how long it still computes after its output."""
    steps = steps_of(units, Pass(forward, 0, 0), recompute=recompute)
    return sum(step.compute_ns + step.beside_ns for step in steps), steps[-1].beside_ns


class StageTraffic(NamedTuple):
    """What a GPU of a stage sends in an iteration: collectives, and messages to other stages."""

    collectives: Counter[Request]
    messages: Counter[int]
    """How many go to each stage."""


@lru_cache(maxsize=64)
def stage_traffic(workload: Workload) -> list[StageTraffic]:
    """What a GPU of each stage sends, whatever the network."""
    staged, units = workload.staged, units_of(workload)
    assert staged is not None
    stages, last = staged.axes.pipeline, len(units) - 1
    traffic = [StageTraffic(Counter(), Counter()) for _ in range(stages)]
    for chunk, members in enumerate(units):
        collectives, messages = traffic[chunk % stages]
        for forward in (True, False):
            for step in steps_of(members, Pass(forward, 0, chunk), recompute=staged.recompute):
                if step.collective is not None:
                    collectives[step.collective] += staged.microbatches
            to = chunk + 1 if forward else chunk - 1
            if stages > 1 and 0 <= to <= last:
                messages[to % stages] += staged.microbatches
        for unit in members:
            _count_weights(unit, staged, collectives)
    return traffic


def _count_weights(unit: ModelUnit, staged: Staged, collectives: Counter[Request]) -> None:
    """Add the collectives of a unit's gradients and weights in an iteration."""
    if staged.sharded is Sharded.NO:
        collectives.update(gradient for gradient in unit.gradients if gradient is not None)
        return
    every = staged.microbatches
    gathers = 2 * every if staged.sharded is Sharded.ZERO3 else 1
    scatters = 1 if staged.sharded is Sharded.ZERO1 else every
    for size, scope in unit.weights:
        collectives[Collective.ALL_GATHER, size, scope] += gathers
        collectives[Collective.REDUCE_SCATTER, size, scope] += scatters


class Step(NamedTuple):
    """A part of a pass: a computation, a collective after it, and a computation beside that."""

    compute_ns: int
    collective: Request | None
    beside_ns: int = 0


@dataclass(slots=True)
class ModelUnit:
    """A unit's steps, its gradients by step of the backward pass, and all of them by scope."""

    forward: list[Step]
    backward: list[Step]
    gradients: list[Request | None]
    weights: list[tuple[int, Scope]]
    is_block: bool


# Cached, because an iteration is estimated on many placements.
@lru_cache(maxsize=64)
def units_of(workload: Workload) -> list[list[ModelUnit]]:
    """The units of each chunk."""
    layers, staged = workload.layers, workload.staged
    assert staged is not None
    sizes = [size for chunk in staged.chunks for size in chunk]
    ends = list(accumulate(sizes))
    made = iter(_unit(layers[end - size : end]) for size, end in zip(sizes, ends, strict=True))
    return [[next(made) for _ in chunk] for chunk in staged.chunks]


def _unit(layers: Sequence[Layer]) -> ModelUnit:
    """The unit that these layers make."""
    weights: Counter[Scope] = Counter()
    for layer in layers:
        if layer.weight_grad.comm_bytes:
            weights[layer.weight_grad.scope] += layer.weight_grad.comm_bytes
    backward = layers[::-1]
    return ModelUnit(
        [Step(_ns(x.forward), _request(x.forward)) for x in layers],
        [Step(_ns(x.input_grad), _request(x.input_grad), _ns(x.weight_grad)) for x in backward],
        [_request(x.weight_grad) for x in backward],
        [(size, scope) for scope, size in weights.items()],
        "." in layers[0].name,
    )


def _ns(phase: Phase) -> int:
    return round(phase.compute_us * NS_PER_US)


def _request(phase: Phase) -> Request | None:
    if phase.collective is Collective.NONE or not phase.comm_bytes:
        return None
    return phase.collective, phase.comm_bytes, phase.scope


def steps_of(units: Sequence[ModelUnit], one: Pass, *, recompute: bool) -> list[Step]:
    """The steps of a pass."""
    if one.forward:
        return [step for unit in units for step in unit.forward]
    again = [step for unit in units if unit.is_block for step in unit.forward] if recompute else []
    return [*again, *(step for unit in reversed(units) for step in unit.backward)]
