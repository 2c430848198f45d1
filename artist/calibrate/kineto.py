"""Traces of PyTorch's profiler (Kineto JSON): what one training step computes and exposes.

A step is a range `ProfilerStep#N`, which `profiler.step()` writes. For each step, in microseconds:

    compute   the union of all kernels that are not collectives (CPU runs: of all operators)
    comm      the union of the collectives' kernels ("nccl...", "gloo:...")
    exposed   the part of comm during which nothing computes

Copies between host and GPU count as neither.

A kernel of the forward pass belongs to the layer whose range `record_function("layer:NAME")`
encloses the launch of the kernel. The backward pass has no such ranges. There, the operator around
the launch has an autograd sequence number, and the kernel belongs to the layer of the forward
operator with the same number.
"""

from __future__ import annotations

import gzip
import json
import math
import zlib
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from artist.errors import TraceError
from artist.io.digests import sha256
from artist.io.reading import read_bytes

Span = tuple[float, float]

_LAYER = "layer:"
_STEP = "ProfilerStep#"
_GLOO = "gloo:"
_CORRELATION, _SEQUENCE = "correlation", "Sequence number"
_ARGS = (_CORRELATION, _SEQUENCE)
_COLLECTIVES = ("nccl", "rccl", _GLOO)


@dataclass(frozen=True, slots=True)
class LayerTime:
    """Compute time of a layer's kernels in one step, microseconds; medians over the steps."""

    name: str
    forward_us: float
    backward_us: float


@dataclass(frozen=True, slots=True)
class ProfiledStep:
    """Medians over the steps of a profile, in microseconds."""

    digest: str
    steps: int
    compute_us: float
    comm_us: float
    exposed_us: float
    layers: tuple[LayerTime, ...]

    @property
    def share(self) -> float:
        """Exposed communication over compute."""
        return self.exposed_us / self.compute_us


def read_kineto(path: Path) -> ProfiledStep:
    """Read a trace, `.json` or `.json.gz`.

    Raises:
        TraceError: the file is cut off, is not a profiler trace, or has nothing to measure.
    """
    data = read_bytes(path)
    all_events = _events(path, data)
    spans, work = _steps(path, all_events), _kernels(path, all_events)
    times = [_step(work, span) for span in spans]
    if min(compute for compute, _, _ in times) <= 0:
        raise TraceError(
            f"{path}: a step without computation; profile whole steps with "
            "schedule(wait=1, warmup=1, active=3)"
        )
    return ProfiledStep(
        digest=sha256(data),
        steps=len(spans),
        compute_us=median(compute for compute, _, _ in times),
        comm_us=median(comm for _, comm, _ in times),
        exposed_us=median(exposed for _, _, exposed in times),
        layers=_layer_times(work, spans, _Layers(all_events)),
    )


def _step(work: list[_TraceEvent], span: Span) -> tuple[float, float, float]:
    """(compute, comm, exposed) of one step. It counts the kernels that start in the step."""
    inside = [event for event in work if span[0] <= event.start < span[1]]
    busy = union(event.span for event in inside if not _is_collective(event))
    comm = union(event.span for event in inside if _is_collective(event))
    return length(busy), length(comm), length(minus(comm, busy))


def _layer_times(
    work: list[_TraceEvent], steps_at: list[Span], layers: _Layers
) -> tuple[LayerTime, ...]:
    """The compute time of each layer, medians over the steps."""
    # Layer -> (step, whether in the backward pass) -> spans of its kernels.
    spans: dict[str, dict[tuple[int, bool], list[Span]]] = {}
    starts = [start for start, _ in steps_at]
    for event in work:
        step = bisect_right(starts, event.start) - 1
        if step < 0 or event.start >= steps_at[step][1] or _is_collective(event):
            continue
        layer = layers.of(event)
        if layer is not None:
            name, backward = layer
            passes = spans.setdefault(name, defaultdict(list))
            passes[step, backward].append(event.span)
    return tuple(
        LayerTime(name, *(_median(passes, len(steps_at), backward) for backward in (False, True)))
        for name, passes in spans.items()
    )


def _median(passes: dict[tuple[int, bool], list[Span]], count: int, backward: bool) -> float:
    """The median over the steps of a layer's compute time in one pass."""
    return median(length(union(passes.get((step, backward), []))) for step in range(count))


@dataclass(frozen=True, slots=True)
class _TraceEvent:
    """A range of time in microseconds. `thread` is (process, thread) or (device, stream)."""

    name: str
    category: str
    thread: Any
    start: float
    end: float
    args: dict[str, object]
    """Only the arguments in `_ARGS`."""

    @property
    def span(self) -> Span:
        """Start and end."""
        return self.start, self.end


def _events(path: Path, data: bytes) -> list[_TraceEvent]:
    """All events of a trace that have a duration."""
    ranges = []
    for number, event in enumerate(_raw_events(path, data), 1):
        if not isinstance(event, dict) or event.get("ph") != "X":
            continue
        try:
            start, duration = float(event["ts"]), float(event.get("dur", 0))
        except (KeyError, TypeError, ValueError, OverflowError):
            raise TraceError(
                f"{path}: event {number} has no time 'ts' or 'dur'; export the trace again"
            ) from None
        name, category = str(event.get("name", "")), str(event.get("cat", "")).lower()
        if not 0 <= duration < math.inf:
            raise TraceError(
                f"{path}: event {number} ({name[:40]}) lasts {duration:g} us; export the trace "
                "again"
            )
        raw: Any = event.get("args")
        known = [key for key in _ARGS if key in raw] if isinstance(raw, dict) else []
        args = {key: _plain(raw[key]) for key in known}
        thread = (_plain(event.get("pid")), _plain(event.get("tid")))
        ranges.append(_TraceEvent(name, category, thread, start, start + duration, args))
    return ranges


def _plain(value: Any) -> object:
    """An id that can be hashed: numbers and texts stay, anything else becomes text."""
    return value if isinstance(value, int | float | str) else str(value)


def _raw_events(path: Path, data: bytes) -> list[Any]:
    """The list `traceEvents` of a trace, compressed or not."""
    try:
        text = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
        body = json.loads(text)
    except json.JSONDecodeError as cause:
        raise TraceError(
            f"{path}:{cause.lineno}: not JSON ({cause.msg}); the trace is cut off: export it again"
        ) from cause
    except (OSError, EOFError, ValueError, RecursionError, zlib.error) as cause:
        raise TraceError(
            f"{path}: not a profiler trace ({cause}); give a .json or .json.gz"
        ) from cause
    raw = body.get("traceEvents") if isinstance(body, dict) else None
    if not isinstance(raw, list):
        raise TraceError(f"{path}:1: no 'traceEvents'; give a trace of torch.profiler")
    return raw


def _steps(path: Path, events: list[_TraceEvent]) -> list[Span]:
    """The spans of the steps: those on the GPU if the trace has them, else those on the CPU."""
    for category in ("gpu_user_annotation", "user_annotation"):
        spans = [
            event.span
            for event in events
            if event.category == category and event.name.startswith(_STEP)
        ]
        if spans:
            return sorted(spans)
    raise TraceError(f"{path}: no '{_STEP}N' ranges; call profiler.step() after each training step")


def _kernels(path: Path, events: list[_TraceEvent]) -> list[_TraceEvent]:
    """The kernels on the GPU. In a CPU run: the operators and gloo's collectives."""
    work = [event for event in events if event.category == "kernel"]
    if not work:
        work = [
            event
            for event in events
            # `c10d::` operators only start a collective; its time is that of the `gloo:` range.
            if event.name.startswith(_GLOO)
            or (event.category == "cpu_op" and not event.name.startswith("c10d::"))
        ]
    if not work:
        raise TraceError(
            f"{path}: no kernels and no operators; profile with activities CPU and CUDA"
        )
    return work


def _is_collective(event: _TraceEvent) -> bool:
    """Whether the event is a collective of NCCL, RCCL or gloo."""
    return event.name.lower().startswith(_COLLECTIVES)


class _Layers:
    """Finds the layer of each kernel (see the docstring of the module)."""

    def __init__(self, events: list[_TraceEvent]) -> None:
        self._launches = {
            event.args.get(_CORRELATION): event
            for event in events
            if event.category in ("cuda_runtime", "cuda_driver")
        }
        ranges: dict[Any, list[_TraceEvent]] = defaultdict(list)
        operators: dict[Any, list[_TraceEvent]] = defaultdict(list)
        for event in events:
            if event.name.startswith(_LAYER) and event.category == "user_annotation":
                ranges[event.thread].append(event)
            elif event.category == "cpu_op" and _SEQUENCE in event.args:
                operators[event.thread].append(event)
        self._ranges = {thread: _Nested(nested) for thread, nested in ranges.items()}
        self._operators = {thread: _Nested(nested) for thread, nested in operators.items()}
        self._sequences: dict[Any, str] = {}
        # A sequence number belongs to the first layer that has an operator with it.
        for of_thread in operators.values():
            for event in of_thread:
                name = self._forward(event)
                if name is not None:
                    self._sequences.setdefault(event.args[_SEQUENCE], name)

    def of(self, kernel: _TraceEvent) -> tuple[str, bool] | None:
        """(layer, whether in its backward pass); None outside all layers."""
        launch = kernel
        if kernel.category == "kernel":
            launch = self._launches.get(kernel.args.get(_CORRELATION), kernel)
        name = self._forward(launch)
        if name is not None:
            return name, False
        nested = self._operators.get(launch.thread)
        for operator in nested.around(launch.start) if nested else ():
            name = self._sequences.get(operator.args[_SEQUENCE])
            if name is not None:
                return name, True
        return None

    def _forward(self, event: _TraceEvent) -> str | None:
        nested = self._ranges.get(event.thread)
        around = nested.around(event.start) if nested else []
        return around[0].name.removeprefix(_LAYER) if around else None


class _Nested:
    """The ranges of one thread, any two of which are nested or disjoint.

    Each range knows the range around it, so that looking up a time does not visit all ranges.
    """

    def __init__(self, events: list[_TraceEvent]) -> None:
        self._events = sorted(events, key=lambda event: (event.start, -event.end))
        self._starts = [event.start for event in self._events]
        self._parents: list[int] = []
        open_: list[int] = []
        for index, event in enumerate(self._events):
            while open_ and self._events[open_[-1]].end <= event.start:
                open_.pop()
            self._parents.append(open_[-1] if open_ else -1)
            open_.append(index)

    def around(self, time: float) -> list[_TraceEvent]:
        """The ranges around a time, innermost first."""
        ranges = []
        index = bisect_right(self._starts, time) - 1
        while index >= 0:
            if self._events[index].end > time:
                ranges.append(self._events[index])
            index = self._parents[index]
        return ranges


def union(spans: Iterable[Span]) -> list[Span]:
    """The union of spans, which may overlap and be in any order."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        elif end > start:
            merged.append((start, end))
    return merged


def minus(these: list[Span], those: list[Span]) -> list[Span]:
    """The time in `these` but not in `those`. Both are sorted and disjoint."""
    rest: list[Span] = []
    index = 0
    for start, end in these:
        while index < len(those) and those[index][1] <= start:
            index += 1
        at = index
        while at < len(those) and those[at][0] < end:
            if those[at][0] > start:
                rest.append((start, those[at][0]))
            start = max(start, those[at][1])
            at += 1
        if start < end:
            rest.append((start, end))
    return rest


def length(spans: Iterable[Span]) -> float:
    """The total time of disjoint spans."""
    return sum(end - start for start, end in spans)
