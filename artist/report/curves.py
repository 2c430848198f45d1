"""Curves of samples and of step lines, with the points that a page keeps, and colours of jobs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from artist.report.figure import Series, rounded
from artist.report.grouping import Setting
from artist.report.reader import FileColumns, Numbers

Indices = npt.NDArray[np.int64]

INTERVALS = 80
"""Equal intervals of a run; on a page 500 points wide, one is 6 points."""

_POINTS = 200
_TONES = 10
_STRIDE = 7  # without a common factor with _TONES, so that ten neighbours have ten colours


def thinned(count: int, most: int) -> Indices:
    """At most `most` evenly spaced indices of `count`, first and last included."""
    if count <= most:
        return np.arange(count)
    return np.unique(np.linspace(0, count - 1, most).round().astype(np.int64))


def extremes(x: Numbers, y: Numbers, intervals: int = INTERVALS) -> Indices:
    """The points of a step line that show its extremes; `x` rises.

    Each of the equal intervals of `x` keeps the points with its least, largest and last value, and
    the first point of all is kept. So no peak is lost, and the line has the right value at the end
    of each interval. There are at most 3 x intervals + 1 points, all of them points of the whole
    line. A gap (NaN) counts as the least value.
    """
    count = len(x)
    if count <= 3 * intervals + 1:
        return np.arange(count)
    edges = np.linspace(x[0], x[-1], intervals + 1)
    interval = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, intervals - 1)
    by_value = np.lexsort((np.nan_to_num(y, nan=-np.inf), interval))
    first = np.flatnonzero(np.diff(interval[by_value], prepend=-1))
    last = np.append(first[1:], count) - 1
    ends = np.flatnonzero(np.diff(interval, append=intervals))
    kept: Indices = np.unique(np.concatenate([[0], by_value[first], by_value[last], ends]))
    return kept


def pool(setting: Setting, column: str) -> Mapping[str, Numbers]:
    """A column of the finished jobs of all replicates, by policy."""
    return {
        policy: np.concatenate([run.finished[column] for run in runs.values()])
        for policy, runs in setting.runs.items()
    }


def cumulative(policy: str, tone: str, values: Numbers, points: int = _POINTS) -> Series:
    """The share of jobs, in percent, with at most a value, thinned to `points` points."""
    ordered = np.sort(values)
    kept = thinned(len(ordered), points)
    share = 100.0 * (kept + 1) / len(ordered)
    # The first point lies at 0 %, so that the curve begins with a vertical step.
    x = np.concatenate([ordered[:1], ordered[kept]])
    return Series(policy, tone, [0.0, *rounded(share)], rounded(x))


def weighted(policy: str, tone: str, values: Numbers, weights: Numbers, end: float) -> Series:
    """The share of all weight, in percent, with at most a value, for values up to `end`.

    It keeps the last point of each of equal intervals of the weight.
    """
    ordered, place = np.unique(values, return_inverse=True)
    below = np.cumsum(np.bincount(place, weights))
    whole = below[-1] or 1.0
    ends = np.searchsorted(below, np.linspace(0.0, below[-1], _POINTS))
    kept = np.unique(np.concatenate([[0], np.minimum(ends, len(ordered) - 1)]))
    kept = kept[(ordered[kept] <= end) | (kept == 0)]
    x = np.concatenate([ordered[:1], ordered[kept]])
    return Series(policy, tone, [0.0, *rounded(100.0 * below[kept] / whole)], rounded(x))


def job_tones(jobs: FileColumns) -> Mapping[str, str]:
    """The colour of each job, `j0` to `j9`: the same in every chart, under every policy.

    It follows from the job's row in `jobs.parquet`, which is its place in the trace. So the runs of
    a setting agree, and neighbours in the trace differ.
    """
    return {name: f"j{row * _STRIDE % _TONES}" for row, name in enumerate(jobs.text["job_id"])}
