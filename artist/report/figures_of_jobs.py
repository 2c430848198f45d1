"""Figures about the jobs of a setting: distributions of their times, and where they were placed.

A figure pools the jobs of all replicates of a policy. The cumulative distributions and the
histogram correspond to figures 9 and 10 of the Dally paper.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from artist.report.figure import Axis, Figure, Kind, Series, named, rounded
from artist.report.figures_by_size import jct_by_size
from artist.report.figures_of_differences import differences
from artist.report.figures_of_fairness import fairness
from artist.report.grouping import Setting, Study
from artist.report.pooled_jobs import cumulative, pool, pooled_note
from artist.report.quantities import Quantity
from artist.report.reader import Numbers, Run
from artist.results.terms.number_text import counted

_BINS = 30
_LEVELS = ("machine", "rack", "network")


def distributions(study: Study, setting: Setting) -> Iterator[Figure]:
    """All figures about the jobs of one setting."""
    pooled = pooled_note(setting)
    jct = pool(setting, "jct_s")
    yield _cdf(study, setting, "jct", Quantity.JCT, pooled)
    yield _histogram(study, setting, jct, pooled)
    yield jct_by_size(study, setting)
    made_of = differences(study, setting)
    if made_of:
        yield made_of
    yield from fairness(study, setting)
    yield _cdf(study, setting, "queue_delay", Quantity.WAITING, pooled)
    by_model = _by_model(study, setting, pooled)
    if by_model:
        yield by_model
    yield from _levels(setting, pooled)


def _cdf(study: Study, setting: Setting, measure: str, quantity: Quantity, note: str) -> Figure:
    scale, unit = study.units[quantity]
    is_jct = quantity is Quantity.JCT
    label = "Job completion time" if is_jct else "Queueing delay"
    return Figure(
        name=named(f"{measure.replace('_', '-')}-cdf", setting.slug),
        kind=Kind.LINES,
        title=f"{label}, cumulative",
        section="completion" if is_jct else "waiting",
        # Completion times span several powers of ten. Delays may be zero, which a logarithmic axis
        # cannot show.
        x=Axis(label, unit, log=is_jct),
        y=Axis("Share of jobs", "%", top=100.0),
        series=[
            cumulative(policy, study.tone(policy), values / scale)
            for policy, values in pool(setting, f"{measure}_s").items()
        ],
        setting=setting.index,
        source=f"jobs.parquet: {measure}_s",
        note=note,
        step=True,
    )


def _histogram(study: Study, setting: Setting, values: Mapping[str, Numbers], note: str) -> Figure:
    # A few very long jobs would squeeze all others into the first bins.
    end = max(float(np.percentile(v, 95)) for v in values.values())
    scale, unit = study.units[Quantity.JCT]
    edges = np.linspace(0.0, end, _BINS + 1)
    series = []
    for policy, times in values.items():
        share = 100.0 * np.histogram(times, edges)[0] / len(times)
        series.append(Series(policy, study.tone(policy), rounded(share), rounded(edges / scale)))
    return Figure(
        name=named("jct-histogram", setting.slug),
        kind=Kind.ROWS,
        title="Job completion time, histogram",
        section="completion",
        x=Axis("Job completion time", unit),
        y=Axis("Share of jobs", "%"),
        series=series,
        setting=setting.index,
        source="jobs.parquet: jct_s",
        note=f"Up to the largest 95th percentile, in {_BINS} bins. "
        f"{_beyond(values, end)} {note}".strip(),
    )


_MOST_NAMED = 3
"""Policies that a note names one by one."""


def _beyond(values: Mapping[str, Numbers], end: float) -> str:
    """How many jobs a histogram that ends there does not show."""
    beyond = {policy: int(np.count_nonzero(times > end)) for policy, times in values.items()}
    if not any(beyond.values()):
        return "No job is beyond it."
    if len(beyond) > _MOST_NAMED:
        return f"Beyond it are {min(beyond.values()):,} to {counted(max(beyond.values()), 'job')}."
    jobs = [f"{count:,} of {len(values[one]):,} jobs of {one}" for one, count in beyond.items()]
    return f"Beyond it: {', '.join(jobs)}."


def _by_model(study: Study, setting: Setting, note: str) -> Figure | None:
    means_of = {p: _mean_by_model(list(runs.values())) for p, runs in setting.runs.items()}
    totals: dict[str, float] = {}
    for means in means_of.values():
        for model, mean in means.items():
            totals[model] = totals.get(model, 0.0) + mean
    models = sorted((m for m in totals if totals[m] > 0), key=lambda m: (-totals[m], m))
    if not models:
        return None
    scale, unit = study.units[Quantity.COMMUNICATION]
    return Figure(
        name=named("communication-by-model", setting.slug),
        kind=Kind.BARS,
        title="Communication latency by model",
        section="communication",
        x=Axis("model"),
        y=Axis("Mean exposed communication per job", unit),
        series=[
            Series(p, study.tone(p), rounded(np.array([m.get(x, 0.0) for x in models]) / scale))
            for p, m in means_of.items()
        ],
        categories=models,
        setting=setting.index,
        source="jobs.parquet: comm_s by model",
        note=note,
    )


def _mean_by_model(runs: Sequence[Run]) -> Mapping[str, float]:
    sums: dict[str, list[float]] = {}
    for run in runs:
        for model, comm in zip(run.jobs.text["model"], run.jobs["comm_s"].tolist(), strict=True):
            sums.setdefault(model, []).append(comm)
    return {model: float(np.mean(values)) for model, values in sums.items()}


def _levels(setting: Setting, note: str) -> Iterator[Figure]:
    """Two figures: placements per level, and GPU time per level."""
    counts = {p: [_level_counts(r) for r in runs.values()] for p, runs in setting.runs.items()}
    held = {p: [_level_hours(r) for r in runs.values()] for p, runs in setting.runs.items()}
    source = "summary.json: " + ", ".join(f"placements_{level}" for level in level_names(setting))
    yield _stack(setting, counts, "placements", "Placements per level", ("Placements", ""), source,
                 note and "Mean over replicates.")  # fmt: skip
    yield _stack(setting, held, "gpu-time", "GPU time per level", ("GPU time", "GPU-hours"),
                 "placements.parquet: gpus x (end_s - start_s) by level",
                 note and "Mean over replicates.")  # fmt: skip


def level_names(setting: Setting) -> list[str]:
    """Levels at which jobs were placed in a setting, inner to outer."""
    runs = [run for runs in setting.runs.values() for run in runs.values()]
    used = {level for run in runs for level in run.placements.text["level"]}
    return [*_LEVELS[:2], *sorted(used - set(_LEVELS)), _LEVELS[2]]


def _level_counts(run: Run) -> Mapping[str, float]:
    prefix = "placements_"
    keys = [key for key in run.summary if key.startswith(prefix)]
    return {key.removeprefix(prefix): run.metric(key) for key in keys}


def _level_hours(run: Run) -> Mapping[str, float]:
    rows = run.placements
    hours = rows["gpus"] * (rows["end_s"] - rows["start_s"]) / 3600.0
    totals: dict[str, float] = {}
    for level, value in zip(rows.text["level"], hours.tolist(), strict=True):
        totals[level] = totals.get(level, 0.0) + value
    return totals


def _stack(
    setting: Setting, values: Mapping[str, Sequence[Mapping[str, float]]], name: str, title: str,
    axis: tuple[str, str], source: str, note: str,
) -> Figure:  # fmt: skip
    return Figure(
        name=named(f"{name}-by-level", setting.slug),
        kind=Kind.STACK,
        title=title,
        section="placement",
        x=Axis(*axis),
        y=Axis("policy"),
        series=[
            Series(
                level, f"l{index}", rounded(np.array([_mean(v, level) for v in values.values()]))
            )
            for index, level in enumerate(level_names(setting))
        ],
        categories=list(values),
        setting=setting.index,
        source=source,
        note=note,
    )


def _mean(replicates: Sequence[Mapping[str, float]], level: str) -> float:
    return float(np.mean([values.get(level, 0.0) for values in replicates]))
