"""Figures that compare settings: bars of one summary metric per policy and setting.

They correspond to figures 7, 8 and 13 of the Dally paper.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from artist.report.figure import Axis, Figure, Kind, Series, named, rounded
from artist.report.grouping import CLUSTER, Replicate, Setting, Study, slugs
from artist.report.quantities import Quantity
from artist.results.statistics.compare_values import LEAST_REPLICATES, clusters_of, mean_interval


class _Bars(NamedTuple):
    """Bars of one metric of the summary."""

    metric: str
    title: str
    section: str
    label: str
    quantity: Quantity


_BARS = (
    _Bars("makespan_s", "Makespan", "completion", "First arrival to last finish", Quantity.TIME),
    _Bars("jct_mean_s", "Average job completion time", "completion", "Mean JCT", Quantity.JCT),
    _Bars("queue_delay_p95_s", "Queueing delay, 95th percentile", "waiting",
          "P95 queueing delay", Quantity.WAITING),
    _Bars("queue_delay_p99_s", "Queueing delay, 99th percentile", "waiting",
          "P99 queueing delay", Quantity.WAITING),
    _Bars("comm_time_mean_s", "Communication latency", "communication",
          "Mean exposed communication", Quantity.COMMUNICATION),
)  # fmt: skip


def overview(study: Study) -> Iterator[Figure]:
    """One figure per metric and facet. A single run has none: there is nothing to compare."""
    if len(study.runs) < 2:
        return
    facets = _facets(study.settings)
    for (words, settings), slug in zip(facets.items(), slugs(facets), strict=True):
        for bars in _BARS:
            yield _bars(study, settings, bars, words, slug)


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
    """What varies along the axis: `racks` or the cluster if the settings differ in it."""
    sizes = [key for key in ("racks", CLUSTER) if key in setting.differs]
    return next(iter((*sizes, *setting.differs)), "")


def _bars(study: Study, settings: Sequence[Setting], bars: _Bars, words: str, slug: str) -> Figure:
    present = [p for p in study.policies if any(p in s.runs for s in settings)]
    values = {policy: [_values(s, policy, bars.metric) for s in settings] for policy in present}
    cells = [cell for of_policy in values.values() for cell in of_policy if cell]
    scale, unit = study.units[bars.quantity]
    few = any(_independent(cell) < LEAST_REPLICATES for cell in cells)
    axis = _axis(settings[0])
    name = bars.metric.removesuffix("_s").replace("_", "-")
    return Figure(
        name=named(name, slug) if words else name,
        kind=Kind.BARS,
        title=f"{bars.title} · {words}" if words else bars.title,
        section=bars.section,
        x=Axis(axis.replace("_", " ")),
        y=Axis(bars.label, unit),
        series=[_series(p, study.tone(p), values[p], scale, few=few) for p in present],
        categories=[s.differs.get(axis, s.label) for s in settings],
        source=f"summary.json: {bars.metric}",
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
