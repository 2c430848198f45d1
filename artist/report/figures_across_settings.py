"""Figures that compare settings or worlds.

Bars of one summary metric per policy and setting correspond to figures 7, 8 and 13 of the Dally
paper. Where verdicts hold is drawn from `decides.json`: a row per world, and in it a dot and an
interval per variant. Its value is in percent of the baseline's, so 100 means no difference.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from artist.report.figure import Figure, Series, described, rounded
from artist.report.grouping import CLUSTER, Replicate, Setting, Study, slugs
from artist.report.quantities import metric_unit
from artist.report.reader import Decides
from artist.report.verdict_sentences import metric_name
from artist.results.statistics.compare_values import LEAST_REPLICATES, clusters_of
from artist.results.statistics.replicate_means import are_geometric, replicate_mean
from artist.results.terms.number_text import listed

_METRICS = (
    "makespan_s", "jct_mean_s", "queue_delay_p95_s", "queue_delay_p99_s", "comm_time_mean_s",
)  # fmt: skip


def overview(study: Study) -> Iterator[Figure]:
    """One figure per metric and facet. A single run has none: there is nothing to compare.

    The facets of a metric share its axis.
    """
    if len(study.runs) < 2:
        return
    facets = _facets(study.settings)
    figures = [
        [_bars(study, settings, metric, words, slug) for metric in _METRICS]
        for (words, settings), slug in zip(facets.items(), slugs(facets), strict=True)
    ]
    tops = [_top(of_metric) for of_metric in zip(*figures, strict=True)]
    for of_facet in figures:
        for figure, top in zip(of_facet, tops, strict=True):
            yield replace(figure, y=replace(figure.y, top=top))


def _top(figures: Sequence[Figure]) -> float | None:
    """Where a common axis ends; None for a single figure, which ends where its values do."""
    ends = [
        end for figure in figures for one in figure.series for end in (*one.y, *one.high)
        if math.isfinite(end)
    ]  # fmt: skip
    return 1.04 * max(ends) if len(figures) > 1 and any(ends) else None


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


def _bars(study: Study, settings: Sequence[Setting], metric: str, words: str, slug: str) -> Figure:
    """The bars of a metric in one facet."""
    present = [p for p in study.policies if any(p in s.runs for s in settings)]
    values = {policy: [s.values(policy, metric) for s in settings] for policy in present}
    cells = [cell for of_policy in values.values() for cell in of_policy if cell]
    few = any(_independent(cell) < LEAST_REPLICATES for cell in cells)
    geometric = are_geometric(run.metric(metric) for run in study.runs)
    whiskers = "the smallest and the largest" if few else "Student's 95 % interval of the mean"
    scale = metric_unit(study, metric, "s").seconds
    axis = _axis(settings[0])
    key = metric.removesuffix("_s").replace("_", "-")
    return described(
        key, study, None,
        [
            _series(p, study.tone(p), values[p], scale, few=few, geometric=geometric)
            for p in present
        ],
        measure=f"{key}_{slug}" if words else key,
        categories=[s.differs.get(axis, s.label) for s in settings],
        facet=f" · {words}" if words else "",
        axis=axis.replace("_", " "),
        whiskers=f"{'Geometric' if geometric else 'Arithmetic'} mean over replicates; "
        f"whiskers: {whiskers}."
        if any(len(cell) > 1 for cell in cells) else "",
    )  # fmt: skip


def _independent(values: Mapping[Replicate, float]) -> int:
    clusters = clusters_of(list(values))
    return len(set(clusters)) if clusters else len(values)


def _series(
    policy: str,
    tone: str,
    cells: Sequence[Mapping[Replicate, float]],
    scale: float,
    *,
    few: bool,
    geometric: bool,
) -> Series:
    """A policy's bars, one for each setting."""
    points = [_mean_and_whiskers(cell, few=few, geometric=geometric) for cell in cells]
    middle, low, high = np.array(points).T / scale
    return Series(policy, tone, rounded(middle), low=rounded(low), high=rounded(high))


def _mean_and_whiskers(
    cell: Mapping[Replicate, float], *, few: bool, geometric: bool
) -> tuple[float, float, float]:
    """A bar and the ends of its whisker; NaN: none. Few replicates have a range only."""
    if not cell:
        return math.nan, math.nan, math.nan
    values = list(cell.values())
    mean, low, high = replicate_mean(values, clusters_of(list(cell)), geometric=geometric)
    if few and len(values) > 1:
        low, high = min(values), max(values)
    return mean, low, high


def of_worlds(study: Study) -> Iterator[Figure]:
    """A figure per comparison and metric."""
    for number, one in enumerate(study.worlds):
        for metric in dict.fromkeys(each.metric for each in one.differences):
            measure = f"worlds-{metric.replace('_', '-')}" + (f"-{number + 1}" if number else "")
            yield _figure(study, one, metric, measure)


def _figure(study: Study, decides: Decides, metric: str, measure: str) -> Figure:
    """How far variants differ from the baseline in each world."""
    of_metric = [one for one in decides.differences if one.metric == metric]
    # The first variant's order: what moves its difference most comes first.
    worlds = [one.world for one in of_metric[0].worlds]
    # Variants that are settings have no colour elsewhere on the page.
    are_policies = all(one.variant in study.policies for one in of_metric)
    series = []
    for number, difference in enumerate(of_metric, start=1):
        by_world = {one.world: one for one in difference.worlds}
        points = [by_world[world] for world in worlds]
        series.append(
            Series(
                difference.variant,
                study.tone(difference.variant) if are_policies else f"s{number}",
                [_percent(one.ratio) for one in points],
                low=[_percent(one.low) for one in points],
                high=[_percent(one.high) for one in points],
            )
        )
    left = f"Not tried: {listed(decides.not_tried)}." if decides.not_tried else ""
    return described(
        "worlds", study, None, series, measure=measure, categories=worlds,
        metric=metric_name(metric), baseline=decides.baseline, design=decides.design, left=left,
    )  # fmt: skip


def _percent(ratio: float | None) -> float:
    return math.nan if ratio is None else float(f"{100 * ratio:.5g}")
