"""When pods arrive and how long they run: as a list records it, or drawn at a load.

A list has openb's columns `creation_time`, `scheduled_time` and `deletion_time`, or `submit_s` and
`duration_s`; all in seconds. A pod of openb arrives when it is created and runs from its scheduling
to its deletion, as in `artist/trace/foreign/openb.py`. One that was never scheduled ran for no time
that is known, and is left out.
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
    """Pods with their times in ticks, by arrival. The first `there` of them are no arrivals.

    They hold GPUs when the run begins, at tick 0: `duration` is what is left of it, and what they
    wait counts for nothing. The run ends at tick `end`; None: when the last one has started. F asks
    which pods of `of` fit. `left_out` pods of the list never ran.
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
        TraceError: a file that is no such table, or a value out of range; names file and line.
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
    """What the pods hold over their run times in all, GPU-seconds."""
    return float((timed.pods.milli * (timed.duration / TICKS_PER_S)).sum()) / 1000


def offered_load(timed: TimedPods, file: MachineFile) -> float | None:
    """GPU-time that pods ask for, over what all GPUs have while they come; None if all at once."""
    span_s = int(timed.arrival[-1]) / TICKS_PER_S
    return gpu_seconds(timed) / (span_s * file.capacity_milli / 1000) if span_s else None


def at_load(timed: TimedPods, file: MachineFile, load: float, count: int, seed: int) -> TimedPods:
    """`count` pods drawn from a list, which would hold `load` x all GPUs if none waited.

    Arrivals are Poisson. Pods that a run in balance would hold are there when it begins, with what
    is left of their run times: as many as a Poisson number of the mean rate x mean duration, drawn
    in proportion to their durations, each at a time of its run that is as likely as any other
    (M/G/infinity in balance: Wolff, *Stochastic modeling and the theory of queues*, 1989, section
    2-2). Run times are so unlike that filling empty machines would take longer than most runs.

    Raises:
        ConfigError: pods on GPUs run for no time, or too many pods would be there.
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
    # The longer it has run, the earlier it came.
    oldest = np.argsort(-run * length[first], kind="stable")
    first, run = first[oldest], run[oldest]
    left = np.maximum(1, (timed.duration[first] * (1 - run)).astype(np.int64))
    drawn = draws.integers(size, size=count)
    gaps = draws.exponential(TICKS_PER_S / rate_per_s, count)
    # Nobody comes at tick 0, when the run begins.
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
