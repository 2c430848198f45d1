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
