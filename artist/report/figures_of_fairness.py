"""How evenly jobs are served: their completion times relative to their work.

`finish_time_fairness` is a job's completion time over its run time without waiting, restarts and
communication. The figures compare its distributions; Jain's index is the metric `jain_index`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from artist.report.figure import Axis, Figure, Kind, Series, named, rounded
from artist.report.grouping import Setting, Study
from artist.report.pooled_jobs import cumulative, pool, pooled_note

ROUNDING = 1e-6
"""What exceeds 1 by less is 1: finishes are rounded to nanoseconds."""


def fairness(study: Study, setting: Setting) -> Iterator[Figure]:
    """The distribution, and the share of jobs that take longer than their work."""
    ratios = pool(setting, "finish_time_fairness")
    yield Figure(
        name=named("fairness-cdf", setting.slug),
        kind=Kind.LINES,
        title="Finish-time fairness, cumulative",
        section="completion",
        x=Axis("Completion time / run time without communication", log=True),
        y=Axis("Share of jobs", "%", top=100.0),
        series=[cumulative(p, study.tone(p), values) for p, values in ratios.items()],
        setting=setting.index,
        source="jobs.parquet: finish_time_fairness",
        note=f"A fair schedule has a steep curve. {_jain(setting)} {pooled_note(setting)}".strip(),
        step=True,
    )
    shares = {p: 100.0 * np.mean(values > 1 + ROUNDING) for p, values in ratios.items()}
    yield Figure(
        name=named("fairness-above-1", setting.slug),
        kind=Kind.BARS,
        title="Jobs that took longer than their work",
        section="completion",
        x=Axis("policy"),
        y=Axis("Share of jobs with finish-time fairness above 1", "%"),
        series=[Series(p, study.tone(p), rounded(np.array([v]))) for p, v in shares.items()],
        categories=["finish-time fairness above 1"],
        setting=setting.index,
        source="jobs.parquet: share of finish_time_fairness above 1",
        note=pooled_note(setting),
    )


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
