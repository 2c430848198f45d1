"""Figures of runs over time: how long pods wait, and how much is allocated and fragmented.

Shares are means over time from the first to the last arrival: after that the cluster only drains.
If all pods arrive at once, they are means until the last pod starts.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from operator import mul
from typing import Any

import numpy as np
import numpy.typing as npt

from artist.pods.over_time import REFUSED, WAITING, Stay
from artist.pods.pod_list import Ints
from artist.pods.pod_times import TimedPods
from artist.units import TICKS_PER_S

SPANS = 200
"""Rows of `timeline.csv` for each run: as many as a plot can show."""

Run = tuple[TimedPods, Stay]


def waits_s(timed: TimedPods, stay: Stay) -> npt.NDArray[np.float64]:
    """How long each arriving pod waited, without refused ones; until the end if it still waits."""
    start = stay.start[timed.there :]
    until = np.where(start == WAITING, 0 if timed.end is None else timed.end, start)
    came = start != REFUSED
    waited: npt.NDArray[np.float64] = (until - timed.arrival[timed.there :])[came] / TICKS_PER_S
    return waited


def summary(runs: Sequence[Run]) -> dict[str, Any]:
    """The main figures of one placer's runs, each with another seed: means over runs.

    A standard deviation is that of a sample; None if there is one run.
    """
    waits = [waits_s(*run) for run in runs]
    means = mean_waits_s(runs)
    facts: dict[str, Any] = {
        "wait_mean_s": statistics.fmean(means),
        "wait_mean_s_sd": statistics.stdev(means) if len(means) > 1 else None,
        "wait_p95_s": statistics.fmean(
            float(np.percentile(one, 95)) if one.size else 0.0 for one in waits
        ),
        "waited_percent": statistics.fmean(
            100 * float((one > 0).mean()) if one.size else 0.0 for one in waits
        ),
    }
    for name, column in (
        ("allocated_percent", "held_milli"),
        ("fragmented_percent", "fragmented"),
    ):
        facts[name] = statistics.fmean(_mean_percent(*run, column) for run in runs)
    for name, mark in (("still_waiting", WAITING), ("refused", REFUSED)):
        facts[name] = statistics.fmean(
            int((stay.start[timed.there :] == mark).sum()) for timed, stay in runs
        )
    total = sum((Counter(stay.lacking) for _, stay in runs), Counter[str]())
    facts["lacking"] = {
        name: mean for name, n in total.most_common() if (mean := round(n / len(runs)))
    }
    return facts


def mean_waits_s(runs: Sequence[Run]) -> list[float]:
    """The mean wait of each run; 0 if all pods are refused."""
    waits = (waits_s(timed, stay) for timed, stay in runs)
    return [statistics.fmean(one.tolist()) if one.size else 0.0 for one in waits]


def _window(timed: TimedPods, stay: Stay) -> int:
    """The tick up to which shares are averaged: the last arrival, or else the last event."""
    return int(timed.arrival[-1]) or int(stay.tick[-1])


def _mean_percent(timed: TimedPods, stay: Stay, column: str) -> float:
    """The mean over time in percent of all GPUs, exact up to the last division."""
    end = _window(timed, stay)
    values: Ints = getattr(stay, column)
    if not end:
        total, time = int(values[-1]), 1
    else:
        lengths = np.diff(np.minimum(np.append(stay.tick, end), end))
        total, time = sum(map(mul, values.tolist(), lengths.tolist())), end
    return 100 * total / (time * _whole(stay, column))


def _whole(stay: Stay, column: str) -> int:
    """The value that is 100 % of a column."""
    return stay.capacity_milli * (stay.typical if column == "fragmented" else 1)


def timeline(timed: TimedPods, stay: Stay) -> Mapping[str, npt.NDArray[np.float64]]:
    """By column, means over `SPANS` equal spans of time; `time_s` is where each begins.

    `waiting` is the mean number of waiting pods.
    """
    end = max(1, _window(timed, stay))
    ticks = np.append(stay.tick, max(end, int(stay.tick[-1]))).astype(np.float64)
    edges = np.linspace(0, end, SPANS + 1)
    columns = {"time_s": edges[:-1] / TICKS_PER_S}
    for name, column in (
        ("allocated_percent", "held_milli"),
        ("fragmented_percent", "fragmented"),
        ("waiting", "waiting"),
    ):
        scale = 100 / _whole(stay, column) if name != "waiting" else 1
        area = np.concatenate(([0.0], np.cumsum(getattr(stay, column) * np.diff(ticks))))
        columns[name] = scale * np.diff(np.interp(edges, ticks, area)) / (end / SPANS)
    return columns
