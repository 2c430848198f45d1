"""Figures as JSON for the page's script.

Example: `{"name": "makespan", "kind": "bars", "series": [{"name": "dally", "tone": "s0", ...}]}`.
The keys are those of `figure.Figure`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from artist.report.figure import MOST_TOGETHER, Axis, Figure, Kind, Series


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
    if figure.kind is Kind.BARS:
        return len(figure.series) > 1 and len(figure.series) * len(figure.categories) > 36
    return len(figure.series) > MOST_TOGETHER and (figure.panels or figure.kind is Kind.WATERFALL)


def _axis(axis: Axis) -> Mapping[str, Any]:
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
