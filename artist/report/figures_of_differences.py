"""What a difference of two policies' mean completion times is made of (`results.jct_parts`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from artist.report.figure import Axis, Figure, Kind, Series, named
from artist.report.grouping import Setting, Study
from artist.report.quantities import Quantity
from artist.report.reader import Run
from artist.results.jct_parts import PARTS

_DIGITS = 5


def mean_parts(runs: Sequence[Run]) -> list[float]:
    """The parts of the mean completion time in seconds, mean over runs, in the order of `PARTS`."""
    return [float(np.mean([run.metric(metric) for run in runs])) for metric in PARTS.values()]


def difference(ours: Sequence[Run], theirs: Sequence[Run]) -> list[float]:
    """Our mean completion time less theirs, in parts."""
    pairs = zip(mean_parts(ours), mean_parts(theirs), strict=True)
    return [our - their for our, their in pairs]


def differences(study: Study, setting: Setting) -> Figure | None:
    """The difference of each policy to the baseline; None if there is nothing to compare."""
    baseline = study.baseline(setting)
    compared = {}
    for policy in setting.runs:
        ours, theirs = _paired(setting, policy, baseline)
        if policy != baseline and ours:
            compared[policy] = difference(ours, theirs)
    if not compared:
        return None
    scale, unit = study.units[Quantity.JCT]
    rows = [[part / scale for part in parts] for parts in compared.values()]
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
        categories=[*PARTS, "difference"],
        setting=setting.index,
        source=f"summary.json: {', '.join(PARTS.values())}",
        note=_note(setting, baseline),
    )


def _note(setting: Setting, baseline: str) -> str:
    note = "Means over the jobs; the parts add up to the difference."
    if any(len(runs) > 1 for runs in setting.runs.values()):
        return f"{note} Over the replicates that {baseline} has too."
    return note


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
