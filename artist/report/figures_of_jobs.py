"""Figures about the jobs of a setting: distributions of their times, and where they were placed.

A figure pools the jobs of all replicates of a policy. The cumulative distributions and the
histogram correspond to figures 9 and 10 of the Dally paper.

`finish_time_fairness` is a job's completion time over its run time without waiting, restarts and
communication. The waterfall says what a difference of mean completion times is made of
(`results.terms.chief_metrics`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from artist.report.curves import cumulative, pool
from artist.report.figure import MOST_TOGETHER, Figure, Series, described, rounded
from artist.report.grouping import Setting, Study
from artist.report.quantities import Quantity
from artist.report.reader import Numbers, RecordedRun
from artist.results.terms.chief_metrics import parts_of
from artist.results.terms.number_text import HOUR
from artist.units import counted

ROUNDING = 1e-6
"""A ratio this little above a whole number is taken as that number: finishes are rounded to ns."""

_BINS = 30
_LEVELS = ("machine", "rack", "network")
_QUANTILES = (10, 50, 90)
_ABOVE = (1, 2, 5, 10)
_DIGITS = 5
_LEAST_WAIT_S = 1.0
"""A logarithmic axis has no 0: a shorter wait, or none, is drawn here."""
_MOST_NAMED = 3
"""Policies that a note names one by one."""


def distributions(study: Study, setting: Setting) -> Iterator[Figure]:
    """All figures about the jobs of one setting."""
    yield _cdf(study, setting, "jct", Quantity.JCT)
    yield _histogram(study, setting)
    yield jct_by_size(study, setting)
    made_of = differences(study, setting)
    if made_of:
        yield made_of
    yield from fairness(study, setting)
    yield _cdf(study, setting, "queue_delay", Quantity.WAITING, _LEAST_WAIT_S)
    by_model = _by_model(study, setting)
    if by_model:
        yield by_model
    yield from _levels(study, setting)


def _cdf(
    study: Study, setting: Setting, measure: str, quantity: Quantity, least_s: float = 0.0
) -> Figure:
    scale = study.units[quantity].seconds
    series = [
        cumulative(policy, study.tone(policy), np.maximum(values, least_s) / scale)
        for policy, values in pool(setting, f"{measure}_s").items()
    ]
    return described(f"{measure.replace('_', '-')}-cdf", study, setting, series)


def _histogram(study: Study, setting: Setting) -> Figure:
    """Shares of the jobs by completion time, without the longest jobs."""
    values = pool(setting, "jct_s")
    # A few very long jobs would squeeze all others into the first bins.
    end = max(float(np.percentile(v, 95)) for v in values.values())
    edges = np.linspace(0.0, end, _BINS + 1)
    x = rounded(edges / study.units[Quantity.JCT].seconds)
    series = [
        Series(p, study.tone(p), rounded(100.0 * np.histogram(v, edges)[0] / len(v)), x)
        for p, v in values.items()
    ]
    return described("jct-histogram", study, setting, series, beyond=_beyond(values, end))


def _beyond(values: Mapping[str, Numbers], end: float) -> str:
    """How many jobs are beyond the end of the histogram, as a sentence."""
    beyond = {policy: int(np.count_nonzero(times > end)) for policy, times in values.items()}
    if not any(beyond.values()):
        return "No job is beyond it."
    if len(beyond) > _MOST_NAMED:
        return f"Beyond it are {min(beyond.values()):,} to {counted(max(beyond.values()), 'job')}."
    jobs = [f"{count:,} of {len(values[one]):,} jobs of {one}" for one, count in beyond.items()]
    return f"Beyond it: {', '.join(jobs)}."


# -- by the number of GPUs ----------------------------------------------------------


def jct_by_size(study: Study, setting: Setting) -> Figure:
    """The median, and the 10th and 90th percentile, of the jobs of each class of sizes."""
    jct, gpus = pool(setting, "jct_s"), pool(setting, "gpus")
    classes = {policy: size_class(values) for policy, values in gpus.items()}
    present = sorted(set(np.concatenate(list(classes.values())).tolist()))
    scale = study.units[Quantity.JCT].seconds
    series = [
        quantiles(policy, study.tone(policy), values / scale, classes[policy], present)
        for policy, values in jct.items()
    ]
    categories = [_class_name(one, list(classes.values())) for one in present]
    return described("jct-by-size", study, setting, series, categories=categories)


def size_class(gpus: Numbers) -> Numbers:
    """The classes 1, 2-4, 5-8, 9-16, 17-32 ... GPUs, as 0, 2, 3, 4, 5 ...: the powers of two."""
    power = np.ceil(np.log2(gpus))
    classes: Numbers = np.where(power == 1, 2.0, power)
    return classes


def _class_name(one: float, classes: Sequence[Numbers]) -> str:
    """The sizes of a class, and its number of jobs if that is the same under all policies."""
    most = int(2**one)
    least = 2 if most == 4 else most // 2 + 1
    size = "1 GPU" if most == 1 else f"{least} to {most} GPUs"
    counts = {int(np.sum(values == one)) for values in classes}
    if len(counts) > 1:
        return size
    return f"{size} · {counted(counts.pop(), 'job')}"


def quantiles(
    policy: str, tone: str, jct: Numbers, classes: Numbers, present: Sequence[float]
) -> Series:
    """The median, and the 10th and 90th percentile, of the jobs of each class that is present."""
    nothing = np.full(len(_QUANTILES), np.nan)
    low, middle, high = np.array([
        np.percentile(jct[classes == one], _QUANTILES) if (classes == one).any() else nothing
        for one in present
    ]).T  # fmt: skip
    return Series(policy, tone, rounded(middle), low=rounded(low), high=rounded(high))


# -- what differences are made of ---------------------------------------------------


def differences(study: Study, setting: Setting) -> Figure | None:
    """The difference of each policy from the baseline; None if there is nothing to compare."""
    if setting.cancelled:
        return None
    baseline = study.baseline(setting)
    compared = {}
    parts = parts_of(run.summary for runs in setting.runs.values() for run in runs.values())
    for policy in setting.runs:
        shared = [key for key in setting.runs[policy] if key in setting.runs[baseline]]
        if policy != baseline and shared:
            ours, theirs = ([setting.runs[p][key] for key in shared] for p in (policy, baseline))
            compared[policy] = difference(ours, theirs, parts)
    if not compared:
        return None
    scale = study.units[Quantity.JCT].seconds
    steps = whole_steps([[part / scale for part in each] for each in compared.values()])
    return described(
        "jct-difference", study, setting,
        [Series(p, study.tone(p), row) for p, row in zip(compared, steps, strict=True)],
        categories=[*parts, "difference"],
        baseline=baseline,
        metrics=", ".join(parts.values()),
        shared=f"Over the replicates that {baseline} has too." if setting.replicated else "",
    )  # fmt: skip


def difference(
    ours: Sequence[RecordedRun], theirs: Sequence[RecordedRun], parts: Mapping[str, str]
) -> list[float]:
    """Our mean completion time less theirs in seconds, mean over runs, in these parts."""
    return [_part_mean(ours, metric) - _part_mean(theirs, metric) for metric in parts.values()]


def _part_mean(runs: Sequence[RecordedRun], part: str) -> float:
    """The mean over runs of the metric of a part; 0 in a run that has no such part."""
    has = [part in parts_of([run.summary]).values() for run in runs]
    return float(
        np.mean([run.metric(part) if one else 0.0 for run, one in zip(runs, has, strict=True)])
    )


def whole_steps(rows: Sequence[Sequence[float]]) -> list[list[float]]:
    """Each row's steps and their sum, rounded so that the steps still add up to the sum.

    The ends of the steps are rounded to multiples of a power of ten that leaves five digits to the
    largest end. A step is the difference of two such ends.
    """
    ends = np.cumsum(np.array(rows, np.float64), axis=1)
    largest = float(np.abs(ends).max())
    decimals = _DIGITS - 1 - int(np.floor(np.log10(largest))) if largest else 0
    rounded_ends = np.round(ends, decimals)
    steps = np.diff(rounded_ends, prepend=0.0, axis=1)
    return [
        [round(value, decimals) for value in (*row.tolist(), end)]
        for row, end in zip(steps, rounded_ends[:, -1].tolist(), strict=True)
    ]


# -- fairness -----------------------------------------------------------------------


def fairness(study: Study, setting: Setting) -> Iterator[Figure]:
    """The distribution of finish-time fairness, and the shares of jobs above some multiples.

    All jobs that waited, restarted or communicated are above 1.
    """
    ratios = pool(setting, "finish_time_fairness")
    curves = [cumulative(p, study.tone(p), values) for p, values in ratios.items()]
    yield described("fairness-cdf", study, setting, curves, jain=_jain(setting))
    yield described(
        "fairness-above", study, setting,
        [Series(p, study.tone(p), rounded(_shares_above(v))) for p, v in ratios.items()],
        categories=[f"above {multiple}" for multiple in _ABOVE],
        wide=len(ratios) > MOST_TOGETHER,
    )  # fmt: skip


def _shares_above(ratios: Numbers) -> Numbers:
    """The share of jobs above each multiple, in percent."""
    return np.array([100.0 * np.mean(ratios > multiple + ROUNDING) for multiple in _ABOVE])


def _jain(setting: Setting) -> str:
    """Jain's index of each policy as a sentence; empty if an earlier version made a run."""
    runs = [run for replicates in setting.runs.values() for run in replicates.values()]
    if any("jain_index" not in run.summary for run in runs):
        return ""
    means = {p: np.mean(list(setting.values(p, "jain_index").values())) for p in setting.runs}
    values = ", ".join(f"{policy} {value:.2f}" for policy, value in means.items())
    return f"Jain's index (1: all jobs alike): {values}."


# -- by model and by level ----------------------------------------------------------


def _by_model(study: Study, setting: Setting) -> Figure | None:
    """Mean communication of the jobs of each model, the most first; None if there is none."""
    means_of = {p: _mean_by_model(list(runs.values())) for p, runs in setting.runs.items()}
    totals: dict[str, float] = {}
    for means in means_of.values():
        for model, mean in means.items():
            totals[model] = totals.get(model, 0.0) + mean
    models = sorted((m for m in totals if totals[m] > 0), key=lambda m: (-totals[m], m))
    if not models:
        return None
    scale = study.units[Quantity.COMMUNICATION].seconds
    series = [
        Series(p, study.tone(p), rounded(np.array([m.get(x, 0.0) for x in models]) / scale))
        for p, m in means_of.items()
    ]
    return described("communication-by-model", study, setting, series, categories=models)


def _mean_by_model(runs: Sequence[RecordedRun]) -> Mapping[str, float]:
    sums: dict[str, list[float]] = {}
    for run in runs:
        done = run.finished
        for model, comm in zip(done.text["model"], done["comm_s"].tolist(), strict=True):
            sums.setdefault(model, []).append(comm)
    return {model: float(np.mean(values)) for model, values in sums.items()}


def _levels(study: Study, setting: Setting) -> Iterator[Figure]:
    """Two figures: placements per level, and GPU time per level."""
    levels = level_names(setting)
    for key, of_run in (("placements", _level_counts), ("gpu-time", gpu_hours_by_level)):
        values = {p: [of_run(run) for run in runs.values()] for p, runs in setting.runs.items()}
        series = [
            Series(level, f"l{i}", rounded(np.array([_mean(v, level) for v in values.values()])))
            for i, level in enumerate(levels)
        ]
        yield described(
            f"{key}-by-level", study, setting, series, categories=list(values),
            metrics=", ".join(f"placements_{level}" for level in levels),
            means="Mean over replicates." if setting.replicated else "",
        )  # fmt: skip


def level_names(setting: Setting) -> list[str]:
    """Levels at which jobs were placed in a setting, inner to outer."""
    runs = [run for runs in setting.runs.values() for run in runs.values()]
    used = {level for run in runs for level in run.placements.text["level"]}
    return [*_LEVELS[:2], *sorted(used - set(_LEVELS)), _LEVELS[2]]


def _level_counts(run: RecordedRun) -> Mapping[str, float]:
    prefix = "placements_"
    keys = [key for key in run.summary if key.startswith(prefix)]
    return {key.removeprefix(prefix): run.metric(key) for key in keys}


def gpu_hours_by_level(run: RecordedRun) -> Mapping[str, float]:
    """GPU-hours that jobs held on placements of each level; of shared GPUs each has its share."""
    rows = run.placements
    hours = rows["gpus"] * (rows["end_s"] - rows["start_s"]) / HOUR / rows.sharers
    totals: dict[str, float] = {}
    for level, value in zip(rows.text["level"], hours.tolist(), strict=True):
        totals[level] = totals.get(level, 0.0) + value
    return totals


def _mean(replicates: Sequence[Mapping[str, float]], level: str) -> float:
    return float(np.mean([values.get(level, 0.0) for values in replicates]))
