"""Which points of a curve a page keeps: few enough to be small, and all that can be seen."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from artist.report.reader import Numbers

Indices = npt.NDArray[np.int64]

INTERVALS = 80
"""Equal intervals of a run; on a page 500 points wide, one is 6 points."""


def thinned(count: int, most: int) -> Indices:
    """At most `most` evenly spaced indices of `count`, first and last included."""
    if count <= most:
        return np.arange(count)
    return np.unique(np.linspace(0, count - 1, most).round().astype(np.int64))


def extremes(x: Numbers, y: Numbers, intervals: int = INTERVALS) -> Indices:
    """The points of a step line that show its extremes; `x` rises.

    Of each of the equal intervals of `x`, the points with the least, the largest and the last
    value stay, and of all points the first. So no peak is lost, the line that is drawn has the
    right value at the end of each interval, and it consists of points of the whole line. There are
    at most 3 x intervals + 1 points. A gap (NaN) counts as the least value.
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
