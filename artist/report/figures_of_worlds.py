"""Where a comparison's verdicts hold: one figure per metric, from `decides.json` of its folder.

A row per world, and in it a dot and an interval per variant: its value in percent of the
baseline's, so 100 is no difference.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from artist.report.figure import Figure, Series, described
from artist.report.grouping import Study
from artist.report.verdict_sentences import metric_name
from artist.report.worlds import Decides
from artist.results.terms.number_text import listed


def of_worlds(study: Study) -> Iterator[Figure]:
    """A figure per comparison and metric."""
    for number, one in enumerate(study.worlds):
        for metric in dict.fromkeys(each.metric for each in one.differences):
            measure = f"worlds-{metric.replace('_', '-')}" + (f"-{number + 1}" if number else "")
            yield _figure(study, one, metric, measure)


def _figure(study: Study, decides: Decides, metric: str, measure: str) -> Figure:
    of_metric = [one for one in decides.differences if one.metric == metric]
    # The first variant's order: what moves its difference most comes first.
    worlds = [one.world for one in of_metric[0].worlds]
    series = []
    for number, difference in enumerate(of_metric):
        by_world = {one.world: one for one in difference.worlds}
        points = [by_world[world] for world in worlds]
        series.append(
            Series(
                difference.variant,
                f"s{number + 1}",
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
