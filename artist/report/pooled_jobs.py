"""The jobs of all replicates of a policy as one sample, and its cumulative distribution."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from artist.report.figure import Series, rounded
from artist.report.grouping import Setting
from artist.report.reader import Numbers
from artist.report.thinning import thinned

_POINTS = 200


def pool(setting: Setting, column: str) -> Mapping[str, Numbers]:
    """A column of the jobs of all replicates, by policy."""
    return {
        policy: np.concatenate([run.jobs[column] for run in runs.values()])
        for policy, runs in setting.runs.items()
    }


def pooled_note(setting: Setting) -> str:
    """Says that replicates are pooled, if there are several."""
    several = any(len(runs) > 1 for runs in setting.runs.values())
    return "Jobs of all replicates." if several else ""


def cumulative(policy: str, tone: str, values: Numbers) -> Series:
    """The share of jobs, in percent, with at most a value."""
    ordered = np.sort(values)
    kept = thinned(len(ordered), _POINTS)
    share = 100.0 * (kept + 1) / len(ordered)
    # The first point lies at 0 %, so that the curve begins with a vertical step.
    x = np.concatenate([ordered[:1], ordered[kept]])
    return Series(policy, tone, [0.0, *rounded(share)], rounded(x))


def weighted(policy: str, tone: str, values: Numbers, weights: Numbers, end: float) -> Series:
    """The share of all weight, in percent, with at most a value, for values up to `end`.

    Of equal intervals of the weight the points stay that end them.
    """
    ordered, place = np.unique(values, return_inverse=True)
    below = np.cumsum(np.bincount(place, weights))
    whole = below[-1] or 1.0
    ends = np.searchsorted(below, np.linspace(0.0, below[-1], _POINTS))
    kept = np.unique(np.concatenate([[0], np.minimum(ends, len(ordered) - 1)]))
    kept = kept[(ordered[kept] <= end) | (kept == 0)]
    x = np.concatenate([ordered[:1], ordered[kept]])
    return Series(policy, tone, [0.0, *rounded(100.0 * below[kept] / whole)], rounded(x))
