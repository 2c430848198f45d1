"""Figures that compare settings: bars of one summary metric per policy and setting.

They correspond to figures 7, 8 and 13 of the Dally paper.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

import numpy as np

from artist.report.figure import Axis, Figure, Kind, Series, rounded, time_unit
from artist.report.grouping import Replicate, Setting, Study
from artist.results.compare_values import LEAST_REPLICATES, clusters_of, mean_interval

# Metric, title, section of the page, label of the axis.
_BARS = (
    ("makespan_s", "Makespan", "completion", "First arrival to last finish"),
    ("jct_mean_s", "Average job completion time", "completion", "Mean JCT"),
    ("queue_delay_p95_s", "Queueing delay, 95th percentile", "waiting", "P95 queueing delay"),
    ("queue_delay_p99_s", "Queueing delay, 99th percentile", "waiting", "P99 queueing delay"),
    ("comm_time_mean_s", "Communication latency", "communication", "Mean exposed communication"),
)


def overview(study: Study) -> Iterator[Figure]:
    """One figure per metric and facet. A single run has none: there is nothing to compare."""
    if len(study.runs) < 2:
        return
    for words, settings in _facets(study.settings).items():
        for metric, title, section, label in _BARS:
            name = metric.removesuffix("_s").replace("_", "-")
            facet = f"-{settings[0].slug}" if words else ""
            yield _bars(
                study, settings, metric, f"{name}{facet}",
                f"{title} · {words}" if words else title, section, label,
            )  # fmt: skip


def _facets(settings: Sequence[Setting]) -> Mapping[str, list[Setting]]:
    """Groups of settings that differ along the axis only.

    The key of a group names what its settings have in common. Example: with the axis `racks`,
    the settings of one trace make one facet, named after the trace.
    """
    facets: dict[str, list[Setting]] = {}
    axis = _axis(settings[0])
    for setting in settings:
        common = " · ".join(value for key, value in setting.differs.items() if key != axis)
        facets.setdefault(common, []).append(setting)
    return facets


def _axis(setting: Setting) -> str:
    """The scenario key that varies along the axis: `racks` if the settings differ in it."""
    return "racks" if "racks" in setting.differs else next(iter(setting.differs), "")


def _bars(
    study: Study, settings: Sequence[Setting], metric: str, name: str, title: str, section: str,
    label: str,
) -> Figure:  # fmt: skip
    present = [p for p in study.policies if any(p in s.runs for s in settings)]
    values = {policy: [_values(s, policy, metric) for s in settings] for policy in present}
    cells = list(chain.from_iterable(values.values()))
    top = max((max(cell.values()) for cell in cells if cell), default=0.0)
    scale, unit = time_unit(top)
    few = any(_independent(cell) < LEAST_REPLICATES for cell in cells if cell)
    axis = _axis(settings[0])
    return Figure(
        name=name,
        kind=Kind.BARS,
        title=title,
        section=section,
        x=Axis(axis.replace("_", " ")),
        y=Axis(label, unit),
        series=[_series(p, study.tone(p), values[p], scale, few=few) for p in present],
        categories=[s.differs.get(axis, s.label) for s in settings],
        source=f"summary.json: {metric}",
        note=_note(few=few) if any(len(cell) > 1 for cell in cells) else "",
    )


def _note(*, few: bool) -> str:
    whiskers = "the smallest and the largest" if few else "Student's 95 % interval of the mean"
    return f"Mean over replicates; whiskers: {whiskers}."


def _values(setting: Setting, policy: str, metric: str) -> Mapping[Replicate, float]:
    return {key: run.metric(metric) for key, run in setting.runs.get(policy, {}).items()}


def _independent(values: Mapping[Replicate, float]) -> int:
    clusters = clusters_of(list(values))
    return len(set(clusters)) if clusters else len(values)


def _series(
    policy: str, tone: str, cells: Sequence[Mapping[Replicate, float]], scale: float, *, few: bool
) -> Series:
    middle = [float(np.mean(list(cell.values()))) if cell else math.nan for cell in cells]
    bounds = [_whiskers(cell, few=few) for cell in cells]
    return Series(
        policy,
        tone,
        rounded(np.array(middle) / scale),
        low=rounded(np.array([low for low, _ in bounds]) / scale),
        high=rounded(np.array([high for _, high in bounds]) / scale),
    )


def _whiskers(cell: Mapping[Replicate, float], *, few: bool) -> tuple[float, float]:
    """NaN: no whisker. An interval says nothing with few replicates, so then it is the range."""
    values = list(cell.values())
    if len(values) < 2:
        return math.nan, math.nan
    return (min(values), max(values)) if few else mean_interval(values, clusters_of(list(cell)))
