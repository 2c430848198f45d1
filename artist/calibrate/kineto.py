"""Traces of PyTorch's profiler (Kineto JSON): what one training step computes and exposes.

Of each `ProfilerStep#N` (`profiler.step()` writes them), times in microseconds:

    compute   union of all kernels that are no collectives (CPU runs: of all operators)
    comm      union of the collectives' kernels ("nccl...", "gloo:...")
    exposed   comm during which nothing computes

A kernel belongs to the layer whose range, `record_function("layer:NAME")`, encloses the
operator that launched it; in the backward pass, to that of the forward operator with the same
autograd sequence number. Copies between host and GPU count as neither.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from artist.calibrate.intervals import Interval, length, minus, union
from artist.calibrate.kineto_events import Event, Layers, events, is_collective, kernels, steps
from artist.errors import TraceError
from artist.io.data_files import read_bytes


@dataclass(frozen=True, slots=True)
class LayerTime:
    """Median compute of a layer's kernels in one step, microseconds."""

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
        TraceError: cut off, no profiler trace, or nothing in it to measure.
    """
    data = read_bytes(path)
    all_events = events(path, data)
    spans, work = steps(path, all_events), kernels(path, all_events)
    found = [_step(work, span) for span in spans]
    if min(compute for compute, _, _ in found) <= 0:
        raise TraceError(
            f"{path}: a step without computation; profile whole steps with "
            "schedule(wait=1, warmup=1, active=3)"
        )
    return StepTimes(
        digest="sha256:" + hashlib.sha256(data).hexdigest(),
        steps=len(spans),
        compute_us=median(compute for compute, _, _ in found),
        comm_us=median(comm for _, comm, _ in found),
        exposed_us=median(exposed for _, _, exposed in found),
        layers=_layer_times(work, spans, Layers(all_events)),
    )


def _step(work: list[Event], span: Interval) -> tuple[float, float, float]:
    """(compute, comm, exposed) of one step; what reaches beyond its end is cut."""
    inside = [event for event in work if span[0] <= event.start < span[1]]
    busy = union(_spans(event for event in inside if not is_collective(event)))
    comm = union(_spans(event for event in inside if is_collective(event)))
    return length(busy), length(comm), length(minus(comm, busy))


def _spans(found: Iterable[Event]) -> list[Interval]:
    return [(event.start, event.end) for event in found]


def _layer_times(
    work: list[Event], steps_at: list[Interval], layers: Layers
) -> tuple[LayerTime, ...]:
    spans: dict[str, dict[tuple[int, bool], list[Interval]]] = {}
    starts = [start for start, _ in steps_at]
    for event in work:
        step = bisect_right(starts, event.start) - 1
        if step < 0 or event.start >= steps_at[step][1] or is_collective(event):
            continue
        found = layers.of(event)
        if found is not None:
            one = spans.setdefault(found[0], defaultdict(list))
            one[step, found[1]].append((event.start, event.end))
    return tuple(
        LayerTime(name, *(_median(one, len(steps_at), backward) for backward in (False, True)))
        for name, one in spans.items()
    )


def _median(one: dict[tuple[int, bool], list[Interval]], steps: int, backward: bool) -> float:
    return median(length(union(one.get((step, backward), []))) for step in range(steps))
