"""Traces of PyTorch's profiler (Kineto JSON): what one training step computes and exposes.

A step is a range `ProfilerStep#N`, which `profiler.step()` writes. For each step, in microseconds:

    compute   the union of all kernels that are not collectives (CPU runs: of all operators)
    comm      the union of the collectives' kernels ("nccl...", "gloo:...")
    exposed   the part of comm during which nothing computes

Copies between host and GPU count as neither. `kineto_events.py` reads the file and finds the layer
of each kernel.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from artist.calibrate.kineto_events import Event, Layers, events, is_collective, kernels, steps
from artist.calibrate.time_spans import Span, length, minus, union
from artist.errors import TraceError
from artist.io.data_files import read_bytes
from artist.io.digests import sha256


@dataclass(frozen=True, slots=True)
class LayerTime:
    """Compute time of a layer's kernels in one step, microseconds; medians over the steps."""

    name: str
    forward_us: float
    backward_us: float


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Medians over the steps of a trace, microseconds."""

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


def read_kineto(path: Path) -> StepTimes:
    """Read a trace, `.json` or `.json.gz`.

    Raises:
        TraceError: the file is cut off, is no profiler trace, or has nothing to measure.
    """
    data = read_bytes(path)
    all_events = events(path, data)
    spans, work = steps(path, all_events), kernels(path, all_events)
    times = [_step(work, span) for span in spans]
    if min(compute for compute, _, _ in times) <= 0:
        raise TraceError(
            f"{path}: a step without computation; profile whole steps with "
            "schedule(wait=1, warmup=1, active=3)"
        )
    return StepTimes(
        digest=sha256(data),
        steps=len(spans),
        compute_us=median(compute for compute, _, _ in times),
        comm_us=median(comm for _, comm, _ in times),
        exposed_us=median(exposed for _, _, exposed in times),
        layers=_layer_times(work, spans, Layers(all_events)),
    )


def _step(work: list[Event], span: Span) -> tuple[float, float, float]:
    """(compute, comm, exposed) of one step. It counts the kernels that start in the step."""
    inside = [event for event in work if span[0] <= event.start < span[1]]
    busy = union(_spans(event for event in inside if not is_collective(event)))
    comm = union(_spans(event for event in inside if is_collective(event)))
    return length(busy), length(comm), length(minus(comm, busy))


def _spans(events_: Iterable[Event]) -> list[Span]:
    return [(event.start, event.end) for event in events_]


def _layer_times(work: list[Event], steps_at: list[Span], layers: Layers) -> tuple[LayerTime, ...]:
    # Layer -> (step, whether in the backward pass) -> spans of its kernels.
    spans: dict[str, dict[tuple[int, bool], list[Span]]] = {}
    starts = [start for start, _ in steps_at]
    for event in work:
        step = bisect_right(starts, event.start) - 1
        if step < 0 or event.start >= steps_at[step][1] or is_collective(event):
            continue
        layer = layers.of(event)
        if layer is not None:
            name, backward = layer
            passes = spans.setdefault(name, defaultdict(list))
            passes[step, backward].append((event.start, event.end))
    return tuple(
        LayerTime(name, *(_median(passes, len(steps_at), backward) for backward in (False, True)))
        for name, passes in spans.items()
    )


def _median(passes: dict[tuple[int, bool], list[Span]], count: int, backward: bool) -> float:
    """The median over the steps of a layer's compute time in one pass."""
    return median(length(union(passes.get((step, backward), []))) for step in range(count))
