"""What a difference between two policies is made of.

A job's completion time is the sum of four columns of `jobs.parquet`:

    jct_s = queue_delay_s + comm_s + stalled_s + compute_s

So a difference of mean completion times is the sum of four differences. The work of a trace,
`ideal_s`, is the same under every policy. So `compute_s` differs by what is computed again after a
preemption, and by what elastic jobs compute on other numbers of GPUs. If the jobs themselves
differ, the rest is the difference of their work.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from artist.report.figure import Axis, Figure, Kind, Series, named
from artist.report.grouping import Setting, Study
from artist.report.quantities import Quantity
from artist.report.reader import Run

_DIGITS = 5
# A rest below this share of the mean is rounding.
_ROUNDING = 1e-9


class Parts(NamedTuple):
    """Parts of a mean completion time, or of a difference of two, in seconds."""

    waiting: float
    communication: float
    stalled: float
    computed_again: float
    other: float

    @property
    def total(self) -> float:
        """The mean completion time, or the difference."""
        return sum(self)


LABELS = {
    "waiting": "waiting",
    "communication": "communication",
    "stalled": "restarts and moves",
    "computed_again": "work done again",
    "other": "other jobs",
}


def mean_parts(runs: Sequence[Run]) -> Parts:
    """The parts of the mean completion time: the mean over runs of the means over their jobs."""
    means = np.mean([_of_run(run) for run in runs], axis=0)
    return Parts(*means.tolist())


def _of_run(run: Run) -> list[float]:
    jobs = run.jobs
    again = jobs["compute_s"] - jobs["ideal_s"]
    parts = [jobs["queue_delay_s"], jobs["comm_s"], jobs["stalled_s"], again]
    means = [float(np.mean(part)) for part in parts]
    return [*means, float(np.mean(jobs["jct_s"])) - sum(means)]


def difference(ours: Sequence[Run], theirs: Sequence[Run]) -> Parts:
    """Our mean completion time less theirs, in parts."""
    pairs = zip(mean_parts(ours), mean_parts(theirs), strict=True)
    return Parts(*(our - their for our, their in pairs))


def differences(study: Study, setting: Setting) -> Figure | None:
    """The difference of each policy to the baseline; None if there is nothing to compare."""
    baseline = study.baseline(setting)
    compared = {}
    for policy in setting.runs:
        ours, theirs = _paired(setting, policy, baseline)
        if policy != baseline and ours:
            compared[policy] = (difference(ours, theirs), mean_parts(theirs).total)
    if not compared:
        return None
    scale, unit = study.units[Quantity.JCT]
    jobs_differ = any(abs(parts.other) > _ROUNDING * base for parts, base in compared.values())
    names = [n for n in Parts._fields if n != "other" or jobs_differ]
    rows = [[getattr(parts, name) / scale for name in names] for parts, _ in compared.values()]
    return Figure(
        name=named("jct-difference", setting.slug),
        kind=Kind.WATERFALL,
        title=f"What the differences to {baseline} are made of",
        section="completion",
        x=Axis("part"),
        y=Axis(f"Mean JCT less that of {baseline}", unit),
        series=[
            Series(policy, study.tone(policy), steps)
            for policy, steps in zip(compared, whole_steps(rows), strict=True)
        ],
        categories=[*(LABELS[name] for name in names), "difference"],
        setting=setting.index,
        source="jobs.parquet: queue_delay_s, comm_s, stalled_s, compute_s - ideal_s; jct_s",
        note=_note(setting, baseline, jobs_differ=jobs_differ),
    )


def _note(setting: Setting, baseline: str, *, jobs_differ: bool) -> str:
    sentences = ["Means over the jobs; the parts add up to the difference."]
    if jobs_differ:
        sentences.append("The runs do not have the same jobs.")
    if any(len(runs) > 1 for runs in setting.runs.values()):
        sentences.append(f"Over the replicates that {baseline} has too.")
    return " ".join(sentences)


def _paired(setting: Setting, policy: str, baseline: str) -> tuple[list[Run], list[Run]]:
    ours, theirs = setting.runs[policy], setting.runs[baseline]
    shared = [key for key in ours if key in theirs]
    return [ours[key] for key in shared], [theirs[key] for key in shared]


def whole_steps(rows: Sequence[Sequence[float]]) -> list[list[float]]:
    """Each row's steps and their sum, rounded so that the steps still add up to the sum.

    What is rounded is where each step ends, to multiples of one power of ten that leaves five
    digits to the largest. A step lies between two such ends.
    """
    ends = np.cumsum(np.array(rows, np.float64), axis=1)
    largest = float(np.abs(ends).max())
    decimals = _DIGITS - 1 - int(np.floor(np.log10(largest))) if largest else 0
    rounded = np.round(ends, decimals)
    steps = np.diff(rounded, prepend=0.0, axis=1)
    return [
        [round(value, decimals) for value in (*row.tolist(), end)]
        for row, end in zip(steps, rounded[:, -1].tolist(), strict=True)
    ]
