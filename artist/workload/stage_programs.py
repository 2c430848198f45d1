"""The nodes of each stage of a divided job: one GPU stands for all of a stage (`lanes.py`).

A pass of a microbatch through a chunk is a series of steps. A step computes, then its collective
runs, beside which only the weight gradient of the step is computed; the next step waits for both:

    forward    compute | collective of the output
    backward   input gradient | collective of the input gradient, beside it the weight gradient

A stage waits for the activations of a microbatch, runs the pass, and sends what comes out of it.
The next pass waits for computation and for its own message only, so sends overlap with it.
Gradients wait for the message of their pass, unless they are eager (`staged.GRADIENTS`). These are
the nodes that ASTRA-sim's workload layer would be given (`docs/fidelity.md`).

If nothing else can be sent during a pass, its steps become one node of kind `SERIES`, to the same
nanosecond. That is so until gradients are sent, and where no weights are gathered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple, Protocol

from artist.workload.division.staged import PREFETCH_ALL, Pass, Sharded, Staged, passes
from artist.workload.graph import Kind
from artist.workload.lanes import LaneProgram
from artist.workload.layers import Collective, Layer, Phase, Scope, Workload

NS_PER_US = 1000

Request = tuple[Collective, int, Scope]
"""A collective, the size of its whole buffer in bytes, and which GPUs take part."""


class Costs(Protocol):
    """How long what is sent takes alone, in ns."""

    def collective_ns(self, request: Request) -> int:
        """A collective; 0 among one GPU."""
        ...

    def message_ns(self, sender: int, receiver: int, size_bytes: int) -> int:
        """A message from a GPU of one stage to its peer in another."""
        ...


class Sent(NamedTuple):
    """What a node sends: a collective, or `border_bytes` to another stage."""

    stage: int
    node: int
    what: tuple[Request, ...]
    to: int | None = None


@dataclass(slots=True)
class StagePrograms:
    """One program per stage, and what its nodes send."""

    programs: list[LaneProgram]
    sent: list[Sent]


def stage_programs(workload: Workload, costs: Costs, *, fine: bool = False) -> StagePrograms:
    """The programs of all stages. With `fine`, every collective has a node of its own."""
    staged = workload.staged
    assert staged is not None
    units = _units(workload)
    sent: list[Sent] = []
    last = len(units) - 1
    programs = [
        _Stage(staged, stage, units, last, costs, sent, fine=fine).run()
        for stage in range(staged.axes.pipeline)
    ]
    return StagePrograms(programs, sent)


@lru_cache(maxsize=64)
def alone_ns(workload: Workload) -> int:
    """How long an iteration takes if everything that is sent arrives at once."""
    staged, units = workload.staged, _units(workload)
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


def _before(one: Pass, last_chunk: int) -> Pass | None:
    """The pass whose output a pass needs."""
    if one.forward:
        return one._replace(chunk=one.chunk - 1) if one.chunk else None
    if one.chunk == last_chunk:
        return one._replace(forward=True)
    return one._replace(chunk=one.chunk + 1)


def _pass_ns(units: Sequence[_Unit], forward: bool, *, recompute: bool) -> tuple[int, int]:
    """How long a pass computes, and for how long of it after its output."""
    steps = _steps(units, Pass(forward, 0, 0), recompute=recompute)
    return sum(step.compute_ns + step.beside_ns for step in steps), steps[-1].beside_ns


class StageTraffic(NamedTuple):
    """What a GPU of a stage sends in an iteration: collectives, and messages to other stages."""

    collectives: Counter[Request]
    messages: Counter[int]
    """How many go to each stage."""


@lru_cache(maxsize=64)
def stage_traffic(workload: Workload) -> list[StageTraffic]:
    """What a GPU of each stage sends, whatever the network."""
    staged, units = workload.staged, _units(workload)
    assert staged is not None
    stages, last = staged.axes.pipeline, len(units) - 1
    traffic = [StageTraffic(Counter(), Counter()) for _ in range(stages)]
    for chunk, members in enumerate(units):
        collectives, messages = traffic[chunk % stages]
        for forward in (True, False):
            for step in _steps(members, Pass(forward, 0, chunk), recompute=staged.recompute):
                if step.collective is not None:
                    collectives[step.collective] += staged.microbatches
            to = chunk + 1 if forward else chunk - 1
            if stages > 1 and 0 <= to <= last:
                messages[to % stages] += staged.microbatches
        for unit in members:
            _count_weights(unit, staged, collectives)
    return traffic


def _count_weights(unit: _Unit, staged: Staged, collectives: Counter[Request]) -> None:
    """Add what a unit's gradients and weights send in an iteration."""
    if staged.sharded is Sharded.NO:
        collectives.update(gradient for gradient in unit.gradients if gradient is not None)
        return
    every = staged.microbatches
    gathers = 2 * every if staged.sharded is Sharded.ZERO3 else 1
    scatters = 1 if staged.sharded is Sharded.ZERO1 else every
    for size, scope in unit.weights:
        collectives[Collective.ALL_GATHER, size, scope] += gathers
        collectives[Collective.REDUCE_SCATTER, size, scope] += scatters


class _Step(NamedTuple):
    compute_ns: int
    collective: Request | None
    beside_ns: int = 0


@dataclass(slots=True)
class _Unit:
    """A unit's steps, its gradients by step of the backward pass, and all of them by scope."""

    forward: list[_Step]
    backward: list[_Step]
    gradients: list[Request | None]
    weights: list[tuple[int, Scope]]
    is_block: bool


# An iteration is asked about on many placements.
@lru_cache(maxsize=64)
def _units(workload: Workload) -> list[list[_Unit]]:
    """The units of each chunk."""
    layers, staged = workload.layers, workload.staged
    assert staged is not None
    sizes = [size for chunk in staged.chunks for size in chunk]
    ends = list(accumulate(sizes))
    made = iter(_unit(layers[end - size : end]) for size, end in zip(sizes, ends, strict=True))
    return [[next(made) for _ in chunk] for chunk in staged.chunks]


def _unit(layers: Sequence[Layer]) -> _Unit:
    weights: Counter[Scope] = Counter()
    for layer in layers:
        if layer.weight_grad.comm_bytes:
            weights[layer.weight_grad.scope] += layer.weight_grad.comm_bytes
    backward = layers[::-1]
    return _Unit(
        [_Step(_ns(x.forward), _request(x.forward)) for x in layers],
        [_Step(_ns(x.input_grad), _request(x.input_grad), _ns(x.weight_grad)) for x in backward],
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


def _steps(units: Sequence[_Unit], one: Pass, *, recompute: bool) -> list[_Step]:
    """The steps of a pass."""
    if one.forward:
        return [step for unit in units for step in unit.forward]
    again = [step for unit in units if unit.is_block for step in unit.forward] if recompute else []
    return [*again, *(step for unit in reversed(units) for step in unit.backward)]


_Gradient = tuple[Request, tuple[int, ...]]
"""How a gradient is sent, and the nodes that compute it."""


class _Tail(NamedTuple):
    """The nodes at the end of a pass: what the next pass waits for, and what a send waits for.

    `gradients` have not been sent yet, each with what computed it.
    """

    computed: int | None
    output: tuple[int, ...]
    gradients: Sequence[_Gradient] = ()


class _Stage:
    """Appends the nodes of one stage."""

    def __init__(
        self,
        staged: Staged,
        stage: int,
        units: list[list[_Unit]],
        last_chunk: int,
        costs: Costs,
        sent: list[Sent],
        *,
        fine: bool,
    ) -> None:
        self._staged, self._stage, self._units = staged, stage, units
        self._last_chunk, self._costs, self._sent = last_chunk, costs, sent
        self._program = LaneProgram()
        self._computed: int | None = None
        self._outputs: dict[tuple[int, int], tuple[int, ...]] = {}
        self._begun: set[int] = set()
        self._fine = fine
        self._merged: dict[tuple[bool, int], _Merged] = {}

    def run(self) -> LaneProgram:
        staged = self._staged
        order = passes(
            staged.schedule,
            self._stage,
            staged.axes.pipeline,
            len(staged.chunks),
            staged.microbatches,
        )
        for one in order:
            self._pass(one)
        return self._program

    def _pass(self, one: Pass) -> None:
        arrived = self._arrived(one)
        staged = self._staged
        # With one microbatch, it is the first and the last one.
        first = one.forward and one.chunk not in self._begun
        self._begun.add(one.chunk)
        last = not one.forward and one.microbatch == staged.microbatches - 1
        gathers = first if staged.sharded is not Sharded.NO else False
        gathers |= staged.sharded is Sharded.ZERO3
        scatters = not one.forward and (last or staged.sharded in (Sharded.ZERO2, Sharded.ZERO3))
        if self._fine or gathers or scatters:
            tail = self._fine_pass(one, arrived, gathers=gathers, scatters=scatters)
            self._fine |= scatters
        else:
            tail = self._merged_pass(one, arrived)
        self._computed = tail.computed
        self._outputs[one.microbatch, one.chunk] = tail.output
        sent = self._send(one, tail.output)
        self._reduce(tail.gradients, sent)

    def _arrived(self, one: Pass) -> tuple[int, ...]:
        """What a pass waits for beside the computation before it."""
        before = one.chunk - 1 if one.forward else one.chunk + 1
        if before < 0:
            return ()
        if before > self._last_chunk:
            return self._outputs.pop((one.microbatch, one.chunk))
        stages = self._staged.axes.pipeline
        if stages == 1:
            return self._outputs.pop((one.microbatch, before), ())
        channel = (before % stages, self._stage, _tag(one), self._staged.border_bytes)
        return (self._program.add(Kind.RECEIVE, 0, (), channel),)

    def _receiver(self, one: Pass) -> int | None:
        """The stage that needs what comes out of a pass; None if no other one does."""
        to, stages = one.chunk + 1 if one.forward else one.chunk - 1, self._staged.axes.pipeline
        return to % stages if stages > 1 and 0 <= to <= self._last_chunk else None

    def _reduce(self, gradients: Sequence[_Gradient], sent: tuple[int, ...] = ()) -> None:
        """Send gradients once they are computed, and after `sent`."""
        for request, computed in gradients:
            self._collective(request, (*computed, *sent))

    def _send(self, one: Pass, output: tuple[int, ...]) -> tuple[int, ...]:
        """The message to the next stage, if there is one."""
        receiver, size = self._receiver(one), self._staged.border_bytes
        if receiver is None:
            return ()
        to = one.chunk + 1 if one.forward else one.chunk - 1
        there = Pass(one.forward, one.microbatch, to)
        duration_ns = self._costs.message_ns(self._stage, receiver, size)
        channel = (self._stage, receiver, _tag(there), size)
        node = self._program.add(Kind.SEND, duration_ns, output, channel)
        self._sent.append(Sent(self._stage, node, (), receiver))
        return (node,)

    def _compute(self, duration_ns: int, after: tuple[int, ...]) -> int:
        return self._program.add(Kind.COMPUTE, duration_ns, after)

    def _collective(self, request: Request, after: tuple[int, ...]) -> int | None:
        """The node of a collective; None for one that takes no time."""
        duration_ns = self._costs.collective_ns(request)
        if not duration_ns:
            return None
        node = self._program.add(Kind.COLLECTIVE, duration_ns, after)
        self._sent.append(Sent(self._stage, node, (request,)))
        return node

    def _merged_pass(self, one: Pass, arrived: tuple[int, ...]) -> _Tail:
        key = (one.forward, one.chunk)
        if key not in self._merged:
            units = self._units[one.chunk]
            steps = _steps(units, one, recompute=self._staged.recompute)
            self._merged[key] = _merged(steps, self._costs)
        merged = self._merged[key]
        after, computed = _of(self._computed, *arrived), self._computed
        if merged.first_ns:
            computed = self._compute(merged.first_ns, after)
            after = (computed,)
        if merged.begin is not None:
            node = self._collective(merged.begin, after)
            assert node is not None  # it takes time, or it would not be the first
            computed = self._compute(merged.begin_beside_ns, after)
            after = (computed, node)
        if merged.series_ns:
            computed = self._program.add(Kind.SERIES, merged.series_ns, after)
            self._sent.append(Sent(self._stage, computed, merged.in_series))
            after = (computed,)
        output = after
        if merged.last is not None:
            node = self._collective(merged.last, after)
            output = output if node is None else (*after, node)
        if merged.last_beside_ns:
            computed = self._compute(merged.last_beside_ns, after)
        return _Tail(computed, output)

    def _fine_pass(
        self, one: Pass, arrived: tuple[int, ...], *, gathers: bool, scatters: bool
    ) -> _Tail:
        """A pass node by node, with the weights and gradients that are sent during it."""
        staged, units = self._staged, self._units[one.chunk]
        sharded = staged.sharded is not Sharded.NO
        walk = _Walk(self, _of(self._computed), arrived)
        gradients: list[_Gradient] = []
        deferred = not staged.eager and self._receiver(one) is not None
        if not one.forward and staged.recompute:
            for unit in units:
                for step in unit.forward if unit.is_block else ():
                    walk.step(step)
        for unit in units if one.forward else reversed(units):
            if gathers:
                walk.gather(unit, staged.prefetch)
            steps = unit.forward if one.forward else unit.backward
            for index, step in enumerate(steps):
                walk.step(step)
                gradient = None if one.forward else unit.gradients[index]
                if scatters and not sharded and gradient is not None:
                    gradients.append((gradient, walk.computed))
            if scatters and sharded:
                for size, scope in unit.weights:
                    gradients.append(((Collective.REDUCE_SCATTER, size, scope), walk.computed))
            if not deferred:
                self._reduce(gradients)
                gradients = []
            walk.end_unit()
        computed = walk.computed[0] if walk.computed else None
        return _Tail(computed, walk.output, gradients)


class _Walk:
    """Where a pass is: its last computation, and what the next step waits for beside that."""

    def __init__(self, stage: _Stage, computed: tuple[int, ...], arrived: tuple[int, ...]) -> None:
        self._stage = stage
        self.computed = computed
        self._waits = arrived
        self.output = (*computed, *arrived)
        self._ends = [computed]
        """The last computation before the pass, then of every unit."""

    def gather(self, unit: _Unit, prefetch: int) -> None:
        """Gather the weights of a unit when the one before those `prefetch` has been computed."""
        at = 0 if prefetch == PREFETCH_ALL else max(len(self._ends) - 1 - prefetch, 0)
        after = self._ends[at]
        for size, scope in unit.weights:
            node = self._stage._collective((Collective.ALL_GATHER, size, scope), after)
            if node is not None:
                self._waits = (*self._waits, node)

    def end_unit(self) -> None:
        """Note what a unit has computed."""
        self._ends.append(self.computed)

    def step(self, step: _Step) -> None:
        """Append a step."""
        stage = self._stage
        after = (*self.computed, *self._waits)
        if step.compute_ns:
            self.computed = after = (stage._compute(step.compute_ns, after),)
            self._waits = ()
        self.output = after
        if step.collective is not None:
            node = stage._collective(step.collective, after)
            if node is not None:
                self._waits = (node,)
                self.output = (*after, node)
        if step.beside_ns:
            self.computed = (stage._compute(step.beside_ns, after),)


@dataclass(slots=True)
class _Merged:
    """A pass in few nodes: what is computed first, the first collective, the series, the last.

    What is computed beside the first and beside the last collective has nodes of its own, since
    these two may have to wait for the message of another pass.
    """

    first_ns: int = 0
    begin: Request | None = None
    begin_beside_ns: int = 0
    series_ns: int = 0
    in_series: tuple[Request, ...] = ()
    last: Request | None = None
    last_beside_ns: int = 0


def _merged(steps: Sequence[_Step], costs: Costs) -> _Merged:
    """A pass during which nothing else is sent."""
    merged, in_series, begun = _Merged(), [], False
    for step in steps[:-1]:
        sent_ns = costs.collective_ns(step.collective) if step.collective is not None else 0
        if begun:
            merged.series_ns += step.compute_ns + max(sent_ns, step.beside_ns)
        else:
            merged.first_ns += step.compute_ns
            if not sent_ns:
                merged.first_ns += step.beside_ns
            elif step.beside_ns:
                merged.begin, merged.begin_beside_ns = step.collective, step.beside_ns
            else:
                merged.series_ns += sent_ns
        if sent_ns:
            begun = True
            if step.collective is not None and merged.begin is not step.collective:
                in_series.append(step.collective)
    last = steps[-1]
    if begun:
        merged.series_ns += last.compute_ns
    else:
        merged.first_ns += last.compute_ns
    merged.in_series = tuple(in_series)
    merged.last, merged.last_beside_ns = last.collective, last.beside_ns
    return merged


def _of(computed: int | None, *others: int) -> tuple[int, ...]:
    return others if computed is None else (computed, *others)


def _tag(one: Pass) -> int:
    """A number for each pass of a chunk: messages of two passes never match."""
    return 2 * one.microbatch + (not one.forward)
