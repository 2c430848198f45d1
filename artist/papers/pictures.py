"""Draws figures of a paper: our values as bars or curves, next to the paper's numbers.

Needs matplotlib (extra `[plot]`). Colours and sizes are those of `artist report --figures`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from artist.io.figures import draw_to
from artist.io.writing import whole_file
from artist.papers.comparing import Judged, Values
from artist.papers.definition import SUBJECT, Item
from artist.report.drawing import draw, style
from artist.report.figure import Figure, FigureAxis, FigureKind, Series
from artist.report.grouping import group
from artist.report.page import figures
from artist.report.paper_figures import STYLE, WIDTH_IN
from artist.report.reader import read_runs
from artist.report.verdict_sentences import metric_name
from artist.results.terms.number_text import time_unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

FORMATS = ("svg", "png")
_PAPER = "#777777"
"""The paper's numbers are grey in every picture."""


def can_draw() -> bool:
    """Whether matplotlib is installed."""
    from importlib.util import find_spec

    return find_spec("matplotlib") is not None


def draw_bars(item: Item, values: Values, judged: Sequence[Judged], out: Path) -> list[Path]:
    """A row per metric: our bars, and our differences next to those of the paper."""
    with _canvas(2 * WIDTH_IN, 2.3 * len(item.metrics)) as canvas:
        grid = canvas.subfigures(len(item.metrics), 2, squeeze=False)
        for (left, right), metric in zip(grid, item.metrics, strict=True):
            draw(_bars(item, metric, values), left)
            _differences(right, item, [one for one in judged if one.claim.metric == metric])
        return _written(canvas, out / item.slug)


def draw_pairs(
    rows: Sequence[Mapping[str, Any]], panel: str, category: str, unit: str, stem: Path
) -> list[Path]:
    """A panel per value of a column: ours and the paper's side by side, on a logarithmic scale."""
    panels = list(dict.fromkeys(row[panel] for row in rows))
    with _canvas(2 * WIDTH_IN, 2.6) as canvas:
        grid = canvas.subplots(1, len(panels), squeeze=False, sharey=True)[0]
        for axes, name in zip(grid, panels, strict=True):
            chosen = [row for row in rows if row[panel] == name]
            _pairs(axes, [row[category] for row in chosen], chosen)
            axes.set_title(metric_name(str(name)))
        _plain_ticks(grid[0])
        grid[0].set_ylabel(unit)
        canvas.legend(*grid[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
        return _written(canvas, stem)


def draw_of_report(item: Item, folders: Sequence[Path], out: Path) -> list[Path]:
    """The figures of `artist report` that correspond to the paper's."""
    study = group(read_runs(folders))
    written = []
    for figure in figures(study):
        if figure.name.startswith(item.drawn):
            with _canvas(WIDTH_IN, 2.3) as canvas:
                draw(figure, canvas)
                written += _written(canvas, out / f"{item.slug}-{figure.name}")
    return written


def _bars(item: Item, metric: str, values: Values) -> Figure:
    """Our means over the seeds, with their range, by racks and policy."""
    largest = max(max(column) for (_, _, name), column in values.items() if name == metric)
    scale, unit = time_unit(largest)
    series = []
    for order, policy in enumerate(item.policies):
        columns = [values.get((racks, policy, metric), ()) for racks in item.racks]
        means, low, high = (
            [how(column) / scale if column else math.nan for column in columns]
            for how in (fmean, min, max)
        )
        ends = (low, high) if any(len(column) > 1 for column in columns) else ((), ())
        series.append(Series(policy, f"s{order}", means, low=ends[0], high=ends[1]))
    return Figure(
        name=metric,
        kind=FigureKind.BARS,
        title=item.shows,
        section="",
        x=FigureAxis("racks"),
        y=FigureAxis(metric_name(metric), unit),
        series=series,
        source="",
        categories=[f"{racks} racks" for racks in item.racks],
    )


def _differences(canvas: Any, item: Item, judged: Sequence[Judged]) -> None:
    """Our differences in percent with their intervals, and the paper's numbers in grey."""
    axes = canvas.add_subplot()
    claims = list(dict.fromkeys(one.claim for one in judged))
    width = 0.8 / max(1, len(claims))
    for one in judged:
        order = claims.index(one.claim)
        at = item.racks.index(one.racks) + (order - (len(claims) - 1) / 2) * width
        colour, _ = style(f"s{item.policies.index(one.claim.rival)}")
        _papers_mark(axes, one, at, width)
        compared = one.compared
        if not math.isnan(compared.low):
            ends = [100 * (end - 1) for end in (compared.low, compared.high)]
            axes.vlines(at, *ends, colors=colour, linewidth=1.0)
        axes.plot([at], [100 * (compared.ratio - 1)], "o", color=colour, markersize=3.5)
    for rival in dict.fromkeys(claim.rival for claim in claims):
        colour, _ = style(f"s{item.policies.index(rival)}")
        axes.plot([], [], "o", color=colour, markersize=3.5, label=f"ours, against {rival}")
    axes.plot(
        [], [], color=_PAPER, linewidth=4, alpha=0.5, label="the paper; a line is its largest"
    )
    axes.axhline(0, color="black", linewidth=0.6)
    axes.set_xticks(range(len(item.racks)), [f"{racks} racks" for racks in item.racks])
    axes.set_ylabel(f"difference of {SUBJECT} (%)")
    axes.grid(visible=True, axis="y")
    canvas.legend(loc="outside upper center", ncols=2)


def _papers_mark(axes: Axes, one: Judged, at: float, width: float) -> None:
    """A band for the paper's range, a line for a bound or a mean."""
    claim, half = one.claim, 0.45 * width
    if claim.low is not None and claim.high is not None and claim.low < claim.high:
        axes.bar(at, claim.high - claim.low, 2 * half, bottom=claim.low, color=_PAPER, alpha=0.35)
    elif claim.low is not None:
        axes.hlines(claim.low, at - half, at + half, colors=_PAPER, linewidth=2.0)
    if claim.mean is not None:
        axes.hlines(claim.mean, at - half, at + half, colors=_PAPER, linewidth=1.0, linestyle=":")


def _pairs(axes: Axes, names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    """Draw two bars for each name: ours and the paper's."""
    places = range(len(names))
    for shift, column, label, colour in (
        (-0.2, "ours", "ours", style("s0")[0]),
        (0.2, "paper", "the paper", _PAPER),
    ):
        heights = [row[column] for row in rows]
        axes.bar([at + shift for at in places], heights, 0.38, color=colour, label=label)
    axes.set_yscale("log")
    axes.set_xticks(places, list(names), rotation=40, ha="right")
    axes.tick_params(axis="x", length=0)
    axes.grid(visible=True, axis="y")


def _plain_ticks(axes: Axes) -> None:
    """Print ticks as plain numbers: figures have no formulas for powers of ten."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.12g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


@contextmanager
def _canvas(width: float, height: float) -> Iterator[Canvas]:
    import matplotlib
    from matplotlib.figure import Figure as Canvas

    with matplotlib.rc_context(STYLE):
        yield Canvas(figsize=(width, height), layout="constrained")


def _written(canvas: Canvas, stem: Path) -> list[Path]:
    written = []
    for name in FORMATS:
        path = stem.with_name(f"{stem.name}.{name}")
        with whole_file(path) as partial:
            draw_to(canvas, partial, name, bbox_inches="tight")
        written.append(path)
    return written
