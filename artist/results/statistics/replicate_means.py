"""The mean of a metric over replicates, with its interval: the same wherever one is printed.

Replicates of a positive metric differ by factors, and policies are compared by ratios. So their
mean is the geometric one, exp(mean log x), and its interval is Student's of the logarithms, which
never goes below zero. Where any value of those that are shown together is zero or below, all means
among them are arithmetic, and so are the intervals. `compare_values` has the same rule for
differences, so the quotient of two means is the `ratio` there.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from artist.results.statistics.compare_values import LEAST_REPLICATES
from artist.results.statistics.paired_input import Floats, do_not_vary, per_cluster
from artist.results.statistics.students_t import t_quantile

K = TypeVar("K", bound=Hashable)


class ReplicateMean(NamedTuple):
    """A mean and its interval; NaN with fewer than five replicates, or copies of one."""

    mean: float
    low: float
    high: float


def are_geometric(values: Iterable[float]) -> bool:
    """Whether means of these values are geometric: all are positive."""
    return all(value > 0 for value in values)


def replicate_mean(
    values: Sequence[float],
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
    *,
    geometric: bool,
) -> ReplicateMean:
    """The mean of independent values, or of clusters of equal size, and Student's interval."""
    column = np.array(values, np.float64)
    steps = per_cluster(np.log(column) if geometric else column, clusters)
    mean = _mean(column, steps, geometric=geometric)
    # Compare the values, not their logarithms: a relative tolerance means nothing near log 1 = 0.
    if len(steps) < LEAST_REPLICATES or do_not_vary(per_cluster(column, clusters)):
        return ReplicateMean(mean, math.nan, math.nan)
    middle = float(steps.mean())
    reach = t_quantile(level, len(steps) - 1) * float(steps.std(ddof=1)) / math.sqrt(len(steps))
    ends = middle - reach, middle + reach
    if geometric:
        with np.errstate(over="ignore"):
            ends = float(np.exp(ends[0])), float(np.exp(ends[1]))
    return ReplicateMean(mean, *ends)


def replicate_means(
    values: Mapping[K, Sequence[float]], clusters: Sequence[Hashable] | None = None
) -> dict[K, float]:
    """The mean of each policy's replicates; arithmetic for all where any value is zero or below."""
    geometric = are_geometric(value for column in values.values() for value in column)
    return {
        key: replicate_mean(column, clusters, geometric=geometric).mean
        for key, column in values.items()
    }


def _mean(column: Floats, steps: Floats, *, geometric: bool) -> float:
    """The mean; of equal values the plain one, since a logarithm and back would round it."""
    if geometric:
        return float(column.mean() if do_not_vary(column) else np.exp(float(steps.mean())))
    return float(steps.mean())
