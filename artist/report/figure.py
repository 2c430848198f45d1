"""A figure, independent of the program that draws it, and its form for the page's script.

`figures.yaml` describes each figure once: kind, titles, axes, source and note. `described` adds
the values, which are in the unit of their axis. The page's script draws figures on the page,
`drawing.py` draws them for papers. `source` names the file and the columns of the values.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from artist.io.safe_yaml import parse_yaml
from artist.report.grouping import Setting, Study
from artist.report.quantities import Quantity
from artist.report.reader import Numbers

MOST_TOGETHER = 4
"""More lines would hide each other, so each gets a panel of its own."""

MARKED_LOSS = 5.0
"""Cells of a heat map are marked if their jobs lose at least this much of their running time, in
percent. The page's script has the same number."""


class FigureKind(StrEnum):
    """How a figure is drawn."""

    BARS = "bars"  # one bar per series and category
    STACK = "stack"  # one bar per category, its parts are the series
    LINES = "lines"  # a curve per series
    ROWS = "rows"  # one small plot per series above a common axis, filled steps
    RANGES = "ranges"  # a dot and a line from low to high per series and category
    WATERFALL = "waterfall"  # one small plot per series: steps from 0 to the last category
    HEAT = "heat"  # a row of cells per series, coloured by value
    CIRCLES = "circles"  # a ring per series, in two circles side by side


@dataclass(frozen=True, slots=True)
class FigureAxis:
    """The quantity along an axis. `log`: on a logarithmic scale."""

    label: str
    unit: str = ""
    log: bool = False
    top: float | None = None
    """The end of the axis; None: the largest value."""

    @property
    def title(self) -> str:
        """Label and unit."""
        return f"{self.label} ({self.unit})" if self.unit else self.label


@dataclass(frozen=True, slots=True)
class Series:
    """One curve or one colour of bars. A NaN is a gap.

    For bars and stacks, `y` has a value per category, and `low` and `high` bound its interval.
    For ranges, `y` is the dot, and `low` and `high` are the ends of the line.
    For waterfalls, `y` has the steps, then their sum.
    For rows, `y` has a value per bin, and `x` holds the edges of the bins: one more than `y`.
    `parts` are the parts of `y`, one sequence for each name in `Figure.parts` except the last,
    which is the rest of `y`.
    For heat, `y` and `x` are as for rows. `parts` are two more values per cell: the most jobs at
    once, and the share of their running time that they lose, in percent.
    For circles, `y` and `x` are as for rows, around the first circle. `parts` are the values around
    the second one, and iteration, Up time and shift in the unit of x. `Figure.parts` names the
    circles. Angles where the series together exceed `Figure.y.top` are marked.
    """

    name: str
    tone: str
    """The name of its colour: `s0` ... for policies, `l0` ... for levels, `j0` ... for jobs,
    `o0` ... for an order. Heat has a scale of its own."""
    y: Sequence[float]
    x: Sequence[float] = ()
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    parts: Sequence[Sequence[float]] = ()


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure: `name` is unique and fit for a file name."""

    name: str
    kind: FigureKind
    title: str
    section: str
    x: FigureAxis
    y: FigureAxis
    series: Sequence[Series]
    source: str
    categories: Sequence[str] = ()
    setting: int | None = None
    """The figure is shown for this setting only; None: for all."""
    policy: int | None = None
    """The figure is shown for this policy only; None: for all."""
    note: str = ""
    step: bool = False
    """For lines: a value holds until the next point."""
    parts: Sequence[str] = ()
    """For rows: the parts of each series, from the axis upwards."""
    broad: bool = False
    """For lines: draw thick lines, because short pieces of a thin line cannot be seen."""
    wide: bool = False
    """The figure needs the whole width of the page. Bars in many groups have it anyway."""
    apart: bool = False
    """For lines: each gets a panel even if there are few, because they hide each other."""

    @property
    def panels(self) -> bool:
        """Whether each line gets a panel of its own, with the others in grey behind it."""
        count = len(self.series)
        return self.kind is FigureKind.LINES and (
            count > MOST_TOGETHER or (self.apart and count > 1)
        )


def named(measure: str, *groups: str) -> str:
    """The name of a figure: what it shows, then its setting and policy.

    The parts have no underscore, so names are unique.
    """
    return "_".join((measure, *groups))


def described(
    key: str,
    study: Study,
    setting: Setting | None,
    series: Sequence[Series],
    *,
    measure: str = "",
    policy: str | None = None,
    categories: Sequence[str] = (),
    top: float | None = None,
    wide: bool = False,
    **texts: str,
) -> Figure:
    """The figure of a key in `figures.yaml` with its series.

    `measure` replaces the key in the figure's name, `top` is where the y axis ends. `texts` fill
    the places in braces of titles, labels, source and note; `{policy}`, `{pooled}` and `{first}`
    are filled here.
    """
    given = _descriptions()[key]
    replicated = setting is not None and setting.replicated
    texts |= {
        "policy": policy or "",
        "pooled": "Jobs of all replicates." if replicated else "",
        "first": "The first replicate." if replicated else "",
        "first_of_each": "The first replicate of each policy." if replicated else "",
    }

    def filled(text: str) -> str:
        return " ".join(text.format(**texts).split())

    def axis(of: Mapping[str, Any], top: float | None = None) -> FigureAxis:
        unit = of.get("unit", "")
        if quantity := of.get("quantity"):
            unit = study.units[Quantity[quantity]].name
        return FigureAxis(filled(of["label"]), unit, of.get("log", False), top or of.get("top"))

    groups = [] if setting is None else [setting.slug]
    if policy is not None:
        groups.append(study.policy_slug(policy))
    return Figure(
        name=named(measure or key, *groups),
        kind=FigureKind(given["kind"]),
        title=filled(given["title"]),
        section=given["section"],
        x=axis(given["x"]),
        y=axis(given["y"], top),
        series=series,
        source=filled(given["source"]),
        categories=categories,
        setting=None if setting is None else setting.index,
        policy=None if policy is None else study.policies.index(policy),
        note=filled(given.get("note", "")),
        parts=tuple(map(filled, given.get("parts", ()))),
        wide=wide or given.get("wide", False),
        step=given.get("step", False),
        broad=given.get("broad", False),
        apart=given.get("apart", False),
    )


@cache
def _descriptions() -> Mapping[str, Any]:
    path = Path(__file__).with_name("figures.yaml")
    return dict(parse_yaml(path.read_text(encoding="utf-8"), path.name)[1])


def rounded(values: Numbers) -> list[float]:
    """The values with five significant digits: more cannot be seen and would enlarge the page."""
    return [float(f"{value:.5g}") for value in values.tolist()]


def script_json(data: Any) -> str:
    """JSON for a script element: `<`, `>` and `&` are escaped, so no text can end the element."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def figure_data(figure: Figure) -> Mapping[str, Any]:
    """A figure without its empty fields.

    Series that have the same x values as the first series omit them.
    """
    data = {
        "name": figure.name,
        "kind": figure.kind.value,
        "title": figure.title,
        "section": figure.section,
        "x": _axis(figure.x),
        "y": _axis(figure.y),
        "source": figure.source,
        "note": figure.note or None,
        "setting": figure.setting,
        "policy": figure.policy,
        "step": figure.step,
        "parts": list(figure.parts) or None,
        "broad": figure.broad or None,
        "panels": figure.panels or None,
        "wide": _wide(figure) or None,
        "series": [_series(series, figure.series[0]) for series in figure.series],
    }
    kept = {key: value for key, value in data.items() if value is not None}
    return kept | {"categories": list(figure.categories)}


def _wide(figure: Figure) -> bool:
    """Whether a figure needs the whole width of the page."""
    if figure.wide:
        return True
    if figure.kind is FigureKind.BARS:
        return len(figure.series) > 1 and len(figure.series) * len(figure.categories) > 36
    return len(figure.series) > MOST_TOGETHER and (
        figure.panels or figure.kind is FigureKind.WATERFALL
    )


def _axis(axis: FigureAxis) -> Mapping[str, Any]:
    data = {"label": axis.label, "unit": axis.unit, "top": axis.top, "log": axis.log}
    return {key: value for key, value in data.items() if value}


def _series(series: Series, first: Series) -> Mapping[str, Any]:
    data: dict[str, Any] = {"name": series.name, "tone": series.tone, "y": _numbers(series.y)}
    if len(series.x) and (series is first or list(series.x) != list(first.x)):
        data["x"] = _numbers(series.x)
    if any(math.isfinite(value) for value in series.low):
        data |= {"low": _numbers(series.low), "high": _numbers(series.high)}
    if series.parts:
        data["parts"] = [_numbers(part) for part in series.parts]
    return data


def _numbers(values: Sequence[float]) -> list[float | int | None]:
    """Whole numbers without a decimal point; null for gaps, because JSON has no NaN."""
    return [_number(value) for value in values]


def _number(value: float) -> float | int | None:
    if not math.isfinite(value):
        return None
    return int(value) if value == int(value) else value
