"""Completion times by the number of GPUs that jobs asked for: who waits, the small or the large?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from artist.report.figure import Axis, Figure, Kind, Series, named, rounded
from artist.report.grouping import Setting, Study
from artist.report.pooled_jobs import pool, pooled_note
from artist.report.quantities import Quantity
from artist.report.reader import Numbers

_QUANTILES = (10, 50, 90)


def jct_by_size(study: Study, setting: Setting) -> Figure:
    """The median, and the 10th and 90th percentile, of the jobs of each class of sizes."""
    jct, gpus = pool(setting, "jct_s"), pool(setting, "gpus")
    classes = {policy: size_class(values) for policy, values in gpus.items()}
    present = sorted(set(np.concatenate(list(classes.values())).tolist()))
    scale, unit = study.units[Quantity.JCT]
    return Figure(
        name=named("jct-by-size", setting.slug),
        kind=Kind.RANGES,
        title="Job completion time by job size",
        section="completion",
        x=Axis("GPUs of the job"),
        y=Axis("Job completion time", unit, log=True),
        series=[
            _series(policy, study.tone(policy), values / scale, classes[policy], present)
            for policy, values in jct.items()
        ],
        categories=_labels(present, classes),
        setting=setting.index,
        source="jobs.parquet: jct_s by gpus",
        note=f"Dot: the median; line: from the 10th to the 90th percentile. {pooled_note(setting)}"
        .strip(),
    )  # fmt: skip


def size_class(gpus: Numbers) -> Numbers:
    """The classes 1, 2-4, 5-8, 9-16, 17-32 ... GPUs, as 0, 2, 3, 4, 5 ...: the powers of two."""
    power = np.ceil(np.log2(gpus))
    classes: Numbers = np.where(power == 1, 2.0, power)
    return classes


def _labels(present: Sequence[float], classes: Mapping[str, Numbers]) -> list[str]:
    """The sizes of each class, and its number of jobs if that is the same under all policies."""
    labels = []
    for one in present:
        most = int(2**one)
        least = 2 if most == 4 else most // 2 + 1
        size = "1 GPU" if most == 1 else f"{least} to {most} GPUs"
        counts = {int(np.sum(values == one)) for values in classes.values()}
        jobs = counts.pop() if len(counts) == 1 else 0
        labels.append(f"{size} · {jobs} {'job' if jobs == 1 else 'jobs'}" if jobs else size)
    return labels


def _series(
    policy: str, tone: str, jct: Numbers, classes: Numbers, present: Sequence[float]
) -> Series:
    nothing = np.full(len(_QUANTILES), np.nan)
    low, middle, high = np.array([
        np.percentile(jct[classes == one], _QUANTILES) if (classes == one).any() else nothing
        for one in present
    ]).T  # fmt: skip
    return Series(policy, tone, rounded(middle), low=rounded(low), high=rounded(high))
