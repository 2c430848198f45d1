"""Reads the events of a Kineto trace and finds the layer of the model that each belongs to.

A kernel of the forward pass belongs to the layer whose range `record_function("layer:NAME")`
encloses the launch of the kernel. In the backward pass there is no such range. There the operator
that encloses the launch has an autograd sequence number; the kernel belongs to the layer of the
forward operator with the same number.
"""

from __future__ import annotations

import gzip
import json
import math
import zlib
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from artist.calibrate.time_spans import Span
from artist.errors import TraceError

LAYER = "layer:"
STEP = "ProfilerStep#"

_GLOO = "gloo:"
_CORRELATION, _SEQUENCE = "correlation", "Sequence number"
_ARGS = (_CORRELATION, _SEQUENCE)
_COLLECTIVES = ("nccl", "rccl", _GLOO)


@dataclass(frozen=True, slots=True)
class Event:
    """A range of time, microseconds. `thread` is (process, thread) or (device, stream)."""

    name: str
    category: str
    thread: Any
    start: float
    end: float
    args: dict[str, object]
    """Only the arguments in `_ARGS`."""


def events(path: Path, data: bytes) -> list[Event]:
    """All events of a trace that have a duration.

    Raises:
        TraceError: the file is cut off, is no profiler trace, or has an event without times.
    """
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
        raw = event.get("args")
        args = {key: _plain(raw[key]) for key in _ARGS if key in raw} if _is_dict(raw) else {}
        thread = (_plain(event.get("pid")), _plain(event.get("tid")))
        ranges.append(Event(name, category, thread, start, start + duration, args))
    return ranges


def _is_dict(value: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _plain(value: Any) -> object:
    """An id as a key of a dict: numbers and texts stay, anything else becomes text."""
    return value if isinstance(value, int | float | str) else str(value)


def _raw_events(path: Path, data: bytes) -> list[Any]:
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


def steps(path: Path, events: list[Event]) -> list[Span]:
    """The spans of the steps: those on the GPU if the trace has them, else those on the CPU.

    Raises:
        TraceError: the trace has no steps.
    """
    for category in ("gpu_user_annotation", "user_annotation"):
        spans = [
            (event.start, event.end)
            for event in events
            if event.category == category and event.name.startswith(STEP)
        ]
        if spans:
            return sorted(spans)
    raise TraceError(f"{path}: no '{STEP}N' ranges; call profiler.step() after each training step")


def kernels(path: Path, events: list[Event]) -> list[Event]:
    """The kernels on the GPU. In a CPU run: the operators and gloo's collectives.

    Raises:
        TraceError: the trace has neither.
    """
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


def is_collective(event: Event) -> bool:
    """Whether the event is a collective of NCCL, RCCL or gloo."""
    return event.name.lower().startswith(_COLLECTIVES)


class Layers:
    """Finds the layer of a kernel, as the module's docstring describes."""

    def __init__(self, events: list[Event]) -> None:
        self._launches = {
            event.args.get(_CORRELATION): event
            for event in events
            if event.category in ("cuda_runtime", "cuda_driver")
        }
        ranges: dict[Any, list[Event]] = defaultdict(list)
        operators: dict[Any, list[Event]] = defaultdict(list)
        for event in events:
            if event.name.startswith(LAYER) and event.category == "user_annotation":
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

    def of(self, kernel: Event) -> tuple[str, bool] | None:
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

    def _forward(self, event: Event) -> str | None:
        nested = self._ranges.get(event.thread)
        around = nested.around(event.start) if nested else []
        return around[0].name.removeprefix(LAYER) if around else None


class _Nested:
    """The ranges of one thread, any two of which are nested or disjoint.

    Each range knows the range around it, so that looking up a time does not visit all ranges.
    """

    def __init__(self, events: list[Event]) -> None:
        self._events = sorted(events, key=lambda event: (event.start, -event.end))
        self._starts = [event.start for event in self._events]
        self._parents: list[int] = []
        open_: list[int] = []
        for index, event in enumerate(self._events):
            while open_ and self._events[open_[-1]].end <= event.start:
                open_.pop()
            self._parents.append(open_[-1] if open_ else -1)
            open_.append(index)

    def around(self, time: float) -> list[Event]:
        """The ranges that hold a time, innermost first."""
        ranges = []
        index = bisect_right(self._starts, time) - 1
        while index >= 0:
            if self._events[index].end > time:
                ranges.append(self._events[index])
            index = self._parents[index]
        return ranges
