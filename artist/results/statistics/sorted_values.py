"""Distinct values and percentiles.

`np.unique` and `np.percentile` give the same to the last bit, but import `numpy.ma`, which takes as
long as simulating a hundred jobs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def rising(*columns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Each value of the columns once, rising; all of them are 0 or more."""
    values: npt.NDArray[np.int64] = np.sort(np.concatenate(columns))
    once: npt.NDArray[np.int64] = values[np.diff(values, prepend=-1) != 0]
    return once


def percentile(values: npt.ArrayLike, percent: float) -> float:
    """A percentile of at least one value, interpolated linearly between two neighbours.

    Method 7 of Hyndman and Fan, *Sample Quantiles in Statistical Packages*, The American
    Statistician, 1996.
    """
    ordered: list[Any] = np.sort(values).tolist()
    place = (len(ordered) - 1) * (percent / 100)
    below = int(place)
    low, high = ordered[below], ordered[min(below + 1, len(ordered) - 1)]
    share = place - below
    # Interpolate from the nearer end, so that a share of 0 or 1 gives that end exactly.
    return float(high - (high - low) * (1 - share) if share >= 0.5 else low + (high - low) * share)


def weighted_percentile(
    values: npt.NDArray[np.float64], weights: npt.NDArray[np.float64], percent: float
) -> float:
    """The smallest value such that it and all smaller values have `percent` % of the weight."""
    ranked = np.argsort(values, kind="stable")
    share = np.cumsum(weights[ranked])
    index = int(np.searchsorted(share, share[-1] * percent / 100))
    return float(values[ranked][min(index, len(values) - 1)])
