"""How a comparison shows itself in Python: as text, as HTML, and as a frame of typed columns."""

from __future__ import annotations

import html
from collections.abc import Iterator
from math import isnan, nan
from typing import TYPE_CHECKING, NamedTuple

from artist.results.statistics.compare_values import IDENTICAL
from artist.results.statistics.holm import undecided_together
from artist.results.terms.glossary import find
from artist.results.terms.number_text import plain
from artist.units import counted

if TYPE_CHECKING:
    import pandas as pd

    from artist.experiments.comparison.comparison_result import Comparison


class ShownRow(NamedTuple):
    """A variant on one metric.

    `low` and `high` are the interval of `ratio`; without a ratio, of `difference`. They are the
    joint one where the verdict is undecided only since many are judged together. `mean` is the
    geometric one of the replicates, so that `ratio` is a quotient of two of them; the arithmetic
    one where a value is zero. `difference` is this mean minus that of the baseline.
    """

    metric: str
    variant: str
    mean: float
    unit: str
    difference: float
    ratio: float
    low: float
    high: float
    verdict: str


def shown_rows(comparison: Comparison) -> Iterator[ShownRow]:
    """A row for each metric and variant; the baseline has no difference."""
    for metric in comparison.metrics:
        term = find(metric)
        unit = term.unit if term else ""
        means = comparison.means(metric)
        first = means[comparison.variants[0]]
        for variant, mean in means.items():
            told = comparison.differences.get(variant, {}).get(metric)
            if told is None:
                yield ShownRow(metric, variant, mean, unit, nan, nan, nan, nan, "baseline")
                continue
            ends = told.low, told.high
            if undecided_together(told) and not isnan(told.joint_low):
                ends = told.joint_low, told.joint_high
            verdict = str(told.verdict)
            yield ShownRow(metric, variant, mean, unit, mean - first, told.ratio, *ends, verdict)


def comparison_frame(comparison: Comparison) -> pd.DataFrame:
    """The rows as a frame: texts are categories, numbers are floats."""
    import pandas as pd

    frame = pd.DataFrame(shown_rows(comparison), columns=ShownRow._fields)
    return frame.astype(dict.fromkeys(("metric", "variant", "unit", "verdict"), "category"))


def comparison_text(comparison: Comparison) -> str:
    """What was compared, and a line for each metric and variant."""
    cells = [_cells(row) for row in shown_rows(comparison)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    )
    return "\n".join((f"<Comparison: {_title(comparison)}>", *lines))


def comparison_html(comparison: Comparison) -> str:
    """The same as a table of HTML, without scripts or styles. Whatever a name holds, it is text."""
    rows = "".join(
        f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in _cells(row))}</tr>"
        for row in shown_rows(comparison)
    )
    names = ("metric", comparison.setting, "mean", "unit", _against(comparison), "verdict")
    head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
    return (
        f"<table><caption>{html.escape(_title(comparison))}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    )


def _title(comparison: Comparison) -> str:
    replicates = counted(comparison.independent, comparison.kind.removesuffix("s"))
    return f"{counted(len(comparison.variants), 'variant')}, {replicates}, {_against(comparison)}"


def _against(comparison: Comparison) -> str:
    return f"against {comparison.variants[0]}, {100 * comparison.level:g} %"


def _cells(row: ShownRow) -> tuple[str, ...]:
    return row.metric, row.variant, plain(row.mean), row.unit, _interval(row), row.verdict


def _interval(row: ShownRow) -> str:
    """The difference with its interval: in percent, or in the metric's unit without a ratio."""
    if row.verdict in ("baseline", IDENTICAL):
        return ""
    numbers = [row.difference if isnan(row.ratio) else row.ratio, row.low, row.high]
    if isnan(row.ratio):
        texts = ["" if isnan(value) else f"{value:+.3g}" for value in numbers]
    else:
        texts = ["" if isnan(value) else f"{100 * (value - 1):+.1f}" for value in numbers]
        texts[0] += " %"
    return f"{texts[0]} [{texts[1]} .. {texts[2]}]" if texts[1] else texts[0]
