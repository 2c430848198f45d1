"""When pods arrive and how long they run: as recorded in a list, or drawn at a given load.

A list has openb's columns `creation_time`, `scheduled_time` and `deletion_time`, or `submit_s` and
`duration_s`; all in seconds. A pod of openb arrives when it is created and runs from its scheduling
to its deletion, as in `artist/trace/foreign/openb.py`. A pod that was never scheduled has no known
run time and is left out.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from artist.errors import ConfigError, TraceError, shortened
from artist.io.csv_rows import Row
from artist.io.reading import as_float
from artist.pods.machine_file import MachineFile
from artist.pods.pod_list import Ints, PodList, pod_rows, pods_of
from artist.rng import stream
from artist.units import MAX_TIME_S, TICKS_PER_S, ticks

OWN = ("submit_s", "duration_s")
OPENB = ("creation_time", "scheduled_time", "deletion_time")

MOST_PODS = 1_000_000


class TimedPods(NamedTuple):
    """Pods with their times in ticks, in the order of arrival.

    The first `there` pods run already when the run begins, at tick 0: their `duration` is what is
    left of it, and their waits do not count. The run ends at tick `end`; None: when the last pod
    has started. Typical pods, for F, are those of the list `of`. `left_out` counts pods that never
    ran.
    """

    pods: PodList
    of: PodList
    arrival: Ints
    duration: Ints
    there: int = 0
    end: int | None = None
    left_out: int = 0


def read_timed_pods(path: Path) -> TimedPods:
    """Read pods and their times; the first arrives at tick 0.

    Raises:
        TraceError: the file is not such a table, or a value is out of range; names file and line.
    """
    columns, rows = pod_rows(path)
    names = next((some for some in (OWN, OPENB) if set(some) <= set(columns)), None)
    if names is None:
        raise TraceError(
            f"{path}:1: no times; expected columns {' and '.join(OWN)}, or {', '.join(OPENB)}"
        )
    ran = [one for one in rows if all(one[1][name] for name in names)] if names == OPENB else rows
    arrival, duration = [], []
    for row in ran:
        at, *rest = (_seconds(row, name) for name in names)
        if len(rest) == 2 and rest[1] < rest[0]:
            raise TraceError(
                f"{row[0]}: deletion_time is {shortened(row[1]['deletion_time'])}, expected a time "
                "not before scheduled_time"
            )
        arrival.append(ticks(at))
        duration.append(ticks(rest[-1] - rest[0]) if len(rest) == 2 else ticks(rest[0]))
    pods = pods_of(path, ran)
    when = np.array(arrival, np.int64)
    order = np.argsort(when, kind="stable")
    sorted_ = PodList(pods.demands, pods.which[order])
    return TimedPods(
        sorted_,
        sorted_,
        when[order] - when.min(),
        np.array(duration, np.int64)[order],
        left_out=len(rows) - len(ran),
    )


def _seconds(row: Row, name: str) -> float:
    value = as_float(row[1][name])
    if not 0 <= value <= MAX_TIME_S:
        raise TraceError(
            f"{row[0]}: {name} is {shortened(row[1][name])}, expected seconds from 0 up to "
            f"{MAX_TIME_S:.0e}"
        )
    return value


def gpu_seconds(timed: TimedPods) -> float:
    """The GPU-seconds that all pods hold over their run times."""
    return float((timed.pods.milli * (timed.duration / TICKS_PER_S)).sum()) / 1000


def offered_load(timed: TimedPods, file: MachineFile) -> float | None:
    """GPU-time of the pods over that of all GPUs until the last arrival; None if that is at 0."""
    span_s = int(timed.arrival[-1]) / TICKS_PER_S
    return gpu_seconds(timed) / (span_s * file.capacity_milli / 1000) if span_s else None


def at_load(timed: TimedPods, file: MachineFile, load: float, count: int, seed: int) -> TimedPods:
    """`count` pods drawn from a list, which would hold `load` x all GPUs if none waited.

    Arrivals are a Poisson process. The run begins in the steady state, because run times differ so
    much that filling empty machines would take longer than most runs. Its pods are those of
    M/G/infinity (Wolff, *Stochastic modeling and the theory of queues*, 1989, section 2-2): their
    number is Poisson with mean rate x mean duration, they are drawn in proportion to their
    durations, and each is at a uniformly random time of its run.

    Raises:
        ConfigError: pods on GPUs run for no time, or too many pods would run at once.
    """
    total = gpu_seconds(timed)
    if not total:
        raise ConfigError("pods that ask for GPUs run for 0 s, which is no load; leave out --load")
    length, size = timed.duration / TICKS_PER_S, len(timed.duration)
    rate_per_s = load * file.capacity_milli / 1000 / (total / size)
    mean_there = rate_per_s * float(length.mean())
    if mean_there > MOST_PODS or count / rate_per_s > MAX_TIME_S:
        raise ConfigError(
            f"at such a load {mean_there:,.0f} pods run at once, and {count:,} come in "
            f"{count / rate_per_s:.0e} s; expected at most {MOST_PODS:,} and {MAX_TIME_S:.0e} s"
        )
    draws = stream(seed, "pods-at-load")
    there = int(draws.poisson(mean_there))
    first = draws.choice(size, there, p=length / length.sum())
    run = draws.random(there)
    # Pods that have run longest arrived first.
    oldest = np.argsort(-run * length[first], kind="stable")
    first, run = first[oldest], run[oldest]
    left = np.maximum(1, (timed.duration[first] * (1 - run)).astype(np.int64))
    drawn = draws.integers(size, size=count)
    gaps = draws.exponential(TICKS_PER_S / rate_per_s, count)
    # No pod arrives at tick 0, when the run begins.
    arrival = np.clip(np.cumsum(gaps), 1, 2 * MAX_TIME_S * TICKS_PER_S).astype(np.int64)
    which = np.concatenate((first, drawn))
    return TimedPods(
        PodList(timed.pods.demands, timed.pods.which[which]),
        timed.pods,
        np.concatenate((np.zeros(there, np.int64), arrival)),
        np.concatenate((left, timed.duration[drawn])),
        there,
        int(arrival[-1]),
        timed.left_out,
    )
