"""How evenly jobs are served: their completion times relative to their work.

`finish_time_fairness` is a job's completion time over its run time without waiting, restarts and
communication. The figures compare its distributions; Jain's index is the metric `jain_index`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from artist.report.figure import MOST_TOGETHER, Axis, Figure, Kind, Series, named, rounded
from artist.report.grouping import Setting, Study
from artist.report.pooled_jobs import cumulative, pool, pooled_note
from artist.report.reader import Numbers

ROUNDING = 1e-6
"""What exceeds a whole number by less is that number: finishes are rounded to nanoseconds."""

_ABOVE = (1, 2, 5, 10)


def fairness(study: Study, setting: Setting) -> Iterator[Figure]:
    """The distribution, and the shares of jobs that take longer than some multiples of their work.

    Above 1 are all jobs that waited, restarted or communicated.
    """
    ratios = pool(setting, "finish_time_fairness")
    yield Figure(
        name=named("fairness-cdf", setting.slug),
        kind=Kind.LINES,
        title="Finish-time fairness, cumulative",
        section="completion",
        x=Axis("JCT / run time without communication", log=True),
        y=Axis("Share of jobs", "%", top=100.0),
        series=[cumulative(p, study.tone(p), values) for p, values in ratios.items()],
        setting=setting.index,
        source="jobs.parquet: finish_time_fairness",
        note=f"A fair schedule has a steep curve. {_jain(setting)} {pooled_note(setting)}".strip(),
        step=True,
    )
    yield Figure(
        name=named("fairness-above", setting.slug),
        kind=Kind.BARS,
        title="Jobs with a finish-time fairness above 1, 2, 5 and 10",
        section="completion",
        x=Axis("Finish-time fairness"),
        y=Axis("Share of jobs", "%"),
        series=[Series(p, study.tone(p), rounded(_shares(v))) for p, v in ratios.items()],
        categories=[f"above {multiple}" for multiple in _ABOVE],
        setting=setting.index,
        source="jobs.parquet: finish_time_fairness above 1, 2, 5, 10",
        wide=len(ratios) > MOST_TOGETHER,
        note=f"1: no waiting, no restart and no communication. {pooled_note(setting)}".strip(),
    )


def _shares(ratios: Numbers) -> Numbers:
    """The share of jobs above each multiple, in percent."""
    return np.array([100.0 * np.mean(ratios > multiple + ROUNDING) for multiple in _ABOVE])


def _jain(setting: Setting) -> str:
    """Jain's index of each policy as a sentence; earlier versions did not write it."""
    runs = [run for replicates in setting.runs.values() for run in replicates.values()]
    if any("jain_index" not in run.summary for run in runs):
        return ""
    means = {
        policy: float(np.mean([run.metric("jain_index") for run in replicates.values()]))
        for policy, replicates in setting.runs.items()
    }
    values = ", ".join(f"{policy} {value:.2f}" for policy, value in means.items())
    return f"Jain's index (1: all jobs alike): {values}."
