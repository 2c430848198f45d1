"""The nodes of each stage of a divided job. One GPU stands for all GPUs of a stage (`graph.py`).

A pass of a microbatch through a chunk is a series of steps (`stage_steps.py`). A stage
waits for the activations of a microbatch, runs the pass, and sends what comes out of it. The next
pass waits for computation and for its own message only, so sends overlap with it. Gradients wait
for the message of their pass, unless they are eager (`staged.GRADIENTS`). These are the nodes that
ASTRA-sim's workload layer would be given (`docs/fidelity.md`).

If nothing else can be sent during a pass, its steps become one node of kind `SERIES`, which ends at
the same nanosecond. That holds until the first gradients are sent, if no weights are gathered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from artist.workload.division.staged import PREFETCH_ALL, Pass, Sharded, Staged, passes
from artist.workload.graph import LaneProgram, NodeAction
from artist.workload.layers import Collective, Workload
from artist.workload.stage_steps import ModelUnit, Request, Step, steps_of, units_of


class Costs(Protocol):
    """How long collectives and messages take alone, in ns."""

    def collective_ns(self, request: Request) -> int:
        """A collective; 0 among one GPU."""
        ...

    def message_ns(self, sender: int, receiver: int, size_bytes: int) -> int:
        """A message from a GPU of one stage to its peer in another."""
        ...


class Sent(NamedTuple):
    """What a node sends: collectives, or `border_bytes` to another stage.

    Collectives that take no time, because they are hidden or have a single member, are counted at
    the computation before them.
    """

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
    units = units_of(workload)
    sent: list[Sent] = []
    last = len(units) - 1
    programs = [
        _Stage(staged, stage, units, last, costs, sent, fine=fine).run()
        for stage in range(staged.axes.pipeline)
    ]
    return StagePrograms(programs, sent)


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
        units: list[list[ModelUnit]],
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
        """The program of the whole iteration."""
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
        """Append a pass, and the messages and gradients that follow it."""
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
        """What a pass waits for, in addition to the computation before it."""
        before = one.chunk - 1 if one.forward else one.chunk + 1
        if before < 0:
            return ()
        if before > self._last_chunk:
            return self._outputs.pop((one.microbatch, one.chunk))
        stages = self._staged.axes.pipeline
        if stages == 1:
            return self._outputs.pop((one.microbatch, before), ())
        channel = (before % stages, self._stage, _tag(one), self._staged.border_bytes)
        return (self._program.add(NodeAction.RECEIVE, 0, (), channel),)

    def _receiver(self, one: Pass) -> int | None:
        """The stage that needs the output of a pass; None if no other stage does."""
        to, stages = one.chunk + 1 if one.forward else one.chunk - 1, self._staged.axes.pipeline
        return to % stages if stages > 1 and 0 <= to <= self._last_chunk else None

    def _reduce(self, gradients: Sequence[_Gradient], sent: tuple[int, ...] = ()) -> None:
        """Send gradients once they are computed, and after `sent`."""
        for request, computed in gradients:
            self._collective(request, (*computed, *sent))

    def _send(self, one: Pass, output: tuple[int, ...]) -> tuple[int, ...]:
        """Append the message to the next stage; its node, or nothing if there is none."""
        receiver, size = self._receiver(one), self._staged.border_bytes
        if receiver is None:
            return ()
        to = one.chunk + 1 if one.forward else one.chunk - 1
        there = Pass(one.forward, one.microbatch, to)
        duration_ns = self._costs.message_ns(self._stage, receiver, size)
        channel = (self._stage, receiver, _tag(there), size)
        node = self._program.add(NodeAction.SEND, duration_ns, output, channel)
        self._sent.append(Sent(self._stage, node, (), receiver))
        return (node,)

    def _compute(self, duration_ns: int, after: tuple[int, ...]) -> int:
        return self._program.add(NodeAction.COMPUTE, duration_ns, after)

    def _collective(self, request: Request, after: tuple[int, ...]) -> int | None:
        """The node of a collective; None for one that takes no time."""
        duration_ns = self._costs.collective_ns(request)
        if not duration_ns:
            if after:
                self._sent.append(Sent(self._stage, after[0], (request,)))
            return None
        node = self._program.add(NodeAction.COLLECTIVE, duration_ns, after)
        self._sent.append(Sent(self._stage, node, (request,)))
        return node

    def _merged_pass(self, one: Pass, arrived: tuple[int, ...]) -> _Tail:
        """Append a pass in as few nodes as possible (the module's docstring says when)."""
        key = (one.forward, one.chunk)
        if key not in self._merged:
            units = self._units[one.chunk]
            steps = steps_of(units, one, recompute=self._staged.recompute)
            self._merged[key] = _merged(steps, self._costs)
        merged = self._merged[key]
        after, computed = _of(self._computed, *arrived), self._computed
        if merged.first_ns:
            computed = self._compute(merged.first_ns, after)
            after = (computed,)
            if merged.hidden:
                self._sent.append(Sent(self._stage, computed, merged.hidden))
        if merged.begin is not None:
            node = self._collective(merged.begin, after)
            assert node is not None  # it takes time, or it would not be the first
            computed = self._compute(merged.begin_beside_ns, after)
            after = (computed, node)
        if merged.series_ns:
            computed = self._program.add(NodeAction.SERIES, merged.series_ns, after)
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
        """Append a pass node by node, with the weights and gradients that are sent during it."""
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
    """Progress through a pass: its last computation, and what else the next step waits for."""

    def __init__(self, stage: _Stage, computed: tuple[int, ...], arrived: tuple[int, ...]) -> None:
        self._stage = stage
        self.computed = computed
        self._waits = arrived
        self.output = (*computed, *arrived)
        self._ends = [computed]
        """The last computation before the pass, then of every unit."""

    def gather(self, unit: ModelUnit, prefetch: int) -> None:
        """Gather the weights of a unit, at most `prefetch` units ahead of the computation."""
        at = 0 if prefetch == PREFETCH_ALL else max(len(self._ends) - 1 - prefetch, 0)
        after = self._ends[at]
        for size, scope in unit.weights:
            node = self._stage._collective((Collective.ALL_GATHER, size, scope), after)
            if node is not None:
                self._waits = (*self._waits, node)

    def end_unit(self) -> None:
        """Note what a unit has computed."""
        self._ends.append(self.computed)

    def step(self, step: Step) -> None:
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

    `hidden` are collectives that take no time; they are counted at the first computation. What is
    computed beside the first and the last collective has nodes of its own, because these two
    collectives may have to wait for the message of another pass.
    """

    first_ns: int = 0
    hidden: tuple[Request, ...] = ()
    begin: Request | None = None
    begin_beside_ns: int = 0
    series_ns: int = 0
    in_series: tuple[Request, ...] = ()
    last: Request | None = None
    last_beside_ns: int = 0


def _merged(steps: Sequence[Step], costs: Costs) -> _Merged:
    """Merge the steps of a pass during which nothing else is sent."""
    merged, begun = _Merged(), False
    hidden: list[Request] = []
    in_series: list[Request] = []
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
        begun = begun or sent_ns > 0
        if step.collective is not None and merged.begin is not step.collective:
            (in_series if begun else hidden).append(step.collective)
    last = steps[-1]
    if begun:
        merged.series_ns += last.compute_ns
    else:
        merged.first_ns += last.compute_ns
    merged.hidden, merged.in_series = tuple(hidden), tuple(in_series)
    merged.last, merged.last_beside_ns = last.collective, last.beside_ns
    return merged


def _of(computed: int | None, *others: int) -> tuple[int, ...]:
    return others if computed is None else (computed, *others)


def _tag(one: Pass) -> int:
    """A number for each pass of a chunk: messages of two passes never match."""
    return 2 * one.microbatch + (not one.forward)
