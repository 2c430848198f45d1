"""Draws figures with matplotlib, in the colours of the page.

`paper_figures.py` decides which figures are drawn and writes the files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from artist.report.figure import MARKED_LOSS, Figure, FigureAxis, FigureKind, Series
from artist.report.reader import RecordedRun
from artist.report.timeline_lanes import machines, strips_of
from artist.results.terms.number_text import DisplayUnit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

_PANEL_IN = 1.15
"""The least width of a panel."""

_LETTER_IN = 0.06
"""The width of a letter of a panel's name."""

_GREY = "#b8b8b8"
_PARTS = "#7a7a7a"
PART_SHADES = (1.0, 0.5, 0.2)
"""Opacities of the parts of a series, from the axis upwards; the style sheet has the same."""


@cache
def palette() -> Mapping[str, str]:
    """The page's light colours by name, e.g. `s0`. Only the style sheet lists them."""
    css = files("artist.report").joinpath("assets", "page.css").read_text(encoding="utf-8")
    return dict(re.findall(r"--([sloj]\d): (#[0-9a-f]{6});", css))


def style(tone: str) -> tuple[str, bool]:
    """The colour of a tone, and whether an earlier tone has the same colour.

    The page has eight policy colours, so `s8` has the colour of `s0`.
    """
    family, index = tone[0], int(tone[1:])
    count = sum(name[0] == family for name in palette())
    return palette()[f"{family}{index % count}"], index >= count


def draw(figure: Figure, canvas: Canvas) -> None:
    """Draw a figure without its title: a paper has captions."""
    if figure.panels:
        _panels(figure, canvas)
    elif figure.kind in _CANVASES:
        _CANVASES[figure.kind](figure, canvas)
    else:
        if figure.kind is FigureKind.RANGES:
            lanes = len(figure.categories) * (len(figure.series) + 1)
            canvas.set_figheight(max(2.3, 0.8 + lanes * 0.09))
        _AXES[figure.kind](figure, canvas.add_subplot())
        if len(figure.series) > 1:
            columns = min(3, len(figure.series))
            canvas.legend(
                loc="outside upper center", ncols=columns, handlelength=1.2, columnspacing=1.2
            )


def _lines(figure: Figure, axes: Axes) -> None:
    for series in figure.series:
        colour, again = style(series.tone)
        _line(figure, axes, series, color=colour, linestyle="--" if again else "-")
    _frame(figure, axes)
    axes.set_xlabel(figure.x.title)
    axes.set_ylabel(figure.y.title)


def _line(figure: Figure, axes: Axes, series: Series, **options: Any) -> None:
    if figure.step:
        options["drawstyle"] = "steps-post"
    if figure.broad:
        options |= {"linewidth": 3.0, "solid_capstyle": "butt"}
    axes.plot(np.array(series.x), np.array(series.y), label=series.name, **options)


def _frame(figure: Figure, axes: Axes) -> None:
    """Scales, ticks and grid of a chart of lines."""
    axes.set_ylim(0, figure.y.top)
    if figure.x.log:
        _log_axis(axes, figure.x)
    else:
        axes.set_xlim(left=0)
    axes.grid(visible=True)


def _log_axis(axes: Axes, axis: FigureAxis) -> None:
    """A logarithmic x axis with plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0,), numticks=6))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.minorticks_off()


def _panels(figure: Figure, canvas: Canvas) -> None:
    """Each line in a panel of its own, in front of the others in grey."""
    longest = max(len(series.name) for series in figure.series)
    each = max(_PANEL_IN, (longest + 3) * _LETTER_IN)
    columns = min(max(1, int(canvas.get_figwidth() / each)), len(figure.series))
    count = -(-len(figure.series) // columns)
    canvas.set_figheight(max(canvas.get_figheight(), 0.6 + 0.95 * count))
    grid = canvas.subplots(count, columns, sharex=True, sharey=True, squeeze=False).ravel()
    for axes, own in zip(grid, figure.series, strict=False):
        for series in figure.series:
            if series is not own:
                _line(figure, axes, series, color=_GREY)
                axes.lines[-1].set_linewidth(0.5)
        _line(figure, axes, own, color=style(own.tone)[0])
        axes.set_title(own.name, loc="left", fontsize=7, pad=1.5)
        _frame(figure, axes)
    for unused in grid[len(figure.series) :]:
        unused.remove()
        above = grid[list(grid).index(unused) - columns]
        above.tick_params(axis="x", labelbottom=True)
    canvas.supxlabel(figure.x.title, fontsize=8)
    canvas.supylabel(figure.y.title, fontsize=8)


def _categories(axes: Axes, places: Any, figure: Figure) -> None:
    """The names of the categories from top to bottom."""
    axes.set_yticks(places, list(figure.categories))
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=True, axis="x")


def _waterfall(figure: Figure, canvas: Canvas) -> None:
    """Steps from 0, one below the other, to their sum."""
    count, places = len(figure.series), np.arange(len(figure.categories))
    canvas.set_figheight(0.5 + count * (0.25 + 0.15 * len(places)))
    grid = canvas.subplots(count, 1, sharex=True, squeeze=False)[:, 0]
    for axes, series in zip(grid, figure.series, strict=True):
        steps = np.array(series.y)
        left = np.append(np.cumsum(steps[:-1]) - steps[:-1], 0.0)
        colours = [_PARTS] * (len(steps) - 1) + [style(series.tone)[0]]
        axes.barh(places, steps, 0.7, left=left, color=colours)
        for place, step, start in zip(places, series.y, left, strict=True):
            words = f" {step:+.3g}" if step else " 0"
            axes.text(max(start, start + step), place, words, va="center", fontsize=6)
        axes.axvline(0, color="black", linewidth=0.6)
        _categories(axes, places, figure)
        axes.set_title(series.name, loc="left", fontsize=7, pad=1.5)
    ends = np.concatenate([np.cumsum(series.y[:-1]) for series in figure.series])
    low, high = min(0.0, float(ends.min())), max(0.0, float(ends.max()))
    room = (high - low) or 1.0
    grid[-1].set_xlim(low - 0.03 * room, high + 0.3 * room)  # the values stand behind the bars
    grid[-1].set_xlabel(figure.y.title)


def _heat(figure: Figure, canvas: Canvas) -> None:
    """A row of cells per series; a line below it where jobs lose much to each other."""
    from matplotlib.colors import LinearSegmentedColormap

    count, edges = len(figure.series), np.array(figure.series[0].x)
    canvas.set_size_inches(2 * canvas.get_figwidth(), max(1.5, 0.9 + 0.17 * count))
    orders = [palette()[f"o{index}"] for index in range(6)]
    # As on the page: pale up to half.
    stops = [(0.0, "white"), *((0.5 + 0.1 * index, one) for index, one in enumerate(orders))]
    colours = LinearSegmentedColormap.from_list("heat", stops)
    axes = canvas.add_subplot()
    for row, series in enumerate(figure.series):
        values = np.array([series.y])
        shown = axes.pcolormesh(edges, [row, row + 0.75], values, cmap=colours, vmin=0.0,
                                vmax=figure.y.top, rasterized=True)  # fmt: skip
        ends = np.flatnonzero(
            np.diff(np.array(series.parts[1]) >= MARKED_LOSS, prepend=False, append=False)
        )
        axes.hlines(np.full(len(ends) // 2, row + 0.86), edges[ends[::2]], edges[ends[1::2]],
                    colors=palette()["l2"], linewidth=1.6)  # fmt: skip
    axes.set_ylim(count, 0)
    axes.set_xlim(edges[0], edges[-1])
    axes.set_yticks(np.arange(count) + 0.375, [series.name for series in figure.series])
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel(figure.x.title)
    canvas.colorbar(shown, ax=axes, label=figure.y.title, pad=0.01)
    line = axes.plot([], [], color=palette()["l2"], linewidth=1.6)
    canvas.legend(line, [f"its jobs lose {MARKED_LOSS:g} % of their time or more"],
                  loc="outside upper center")  # fmt: skip


def _ranges(figure: Figure, axes: Axes) -> None:
    """A dot, and a line from low to high, per series in each category."""
    each = len(figure.series) + 1
    places = np.arange(len(figure.categories)) * each
    for order, series in enumerate(figure.series):
        colour, again = style(series.tone)
        y = places + order
        axes.hlines(y, series.low, series.high, colors=colour, linewidth=1.1)
        axes.plot(series.y, y, "o", color=colour, markersize=3, label=series.name,
                  markerfacecolor="white" if again else colour)  # fmt: skip
    _categories(axes, places + (len(figure.series) - 1) / 2, figure)
    if figure.y.log:
        _log_axis(axes, figure.y)
    axes.set_xlabel(figure.y.title)


def _bars(figure: Figure, axes: Axes) -> None:
    """A bar per series in each category, with whiskers where there is an interval."""
    places = np.arange(len(figure.categories), dtype=np.float64)
    width = 0.84 / len(figure.series)
    for order, series in enumerate(figure.series):
        colour, again = style(series.tone)
        x = places + (order - (len(figure.series) - 1) / 2) * width
        axes.bar(x, series.y, width * 0.9, color=colour, alpha=0.55 if again else 1.0,
                 label=series.name)  # fmt: skip
        _whiskers(axes, x, series)
    # Long names would overlap, so they are set aslant.
    long = max(len(name) for name in figure.categories) * len(figure.categories) > 48
    rotation: dict[str, Any] = {"rotation": 30, "ha": "right"} if long else {}
    axes.set_xticks(places, list(figure.categories), **rotation)
    axes.tick_params(axis="x", length=0)
    axes.grid(visible=True, axis="y")
    axes.set_ylabel(figure.y.title)
    if figure.y.top is not None:
        axes.set_ylim(0, figure.y.top)


def _whiskers(axes: Axes, x: Any, series: Series) -> None:
    if len(series.low) and np.isfinite(series.low).any():
        axes.vlines(x, series.low, series.high, colors="black", linewidth=0.8)


def _stack(figure: Figure, axes: Axes) -> None:
    places = np.arange(len(figure.categories))
    left = np.zeros(len(places))
    for series in figure.series:
        axes.barh(places, series.y, 0.6, left=left, color=style(series.tone)[0],
                  label=series.name)  # fmt: skip
        left += np.array(series.y)
    _categories(axes, places, figure)
    axes.set_xlabel(figure.x.title)


def _rows(figure: Figure, canvas: Canvas) -> None:
    """Filled steps per series, one below the other."""
    count = len(figure.series)
    canvas.set_figheight(max(1.9, 0.6 + 0.5 * count))
    grid = canvas.subplots(count, 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    shades = PART_SHADES[: len(figure.parts)] or (1.0,)
    for axes, series in zip(grid, figure.series, strict=True):
        colour, base = style(series.tone)[0], np.zeros(len(series.y))
        inner = np.cumsum(np.array(series.parts), axis=0) if series.parts else ()
        for top, shade in zip([*inner, np.array(series.y)], shades, strict=True):
            axes.stairs(top, series.x, baseline=base, fill=True, color=colour, alpha=shade)
            base = top
        if count > 1:
            axes.set_title(series.name, loc="left", fontsize=7, pad=1.5)
        axes.set_xlim(series.x[0], series.x[-1])
        axes.set_ylim(0, figure.y.top)
    _legend_of_parts(figure, canvas, shades)
    grid[-1].set_xlabel(figure.x.title)
    canvas.supylabel(figure.y.title, fontsize=8)


def _legend_of_parts(figure: Figure, canvas: Canvas, shades: Sequence[float]) -> None:
    from matplotlib.patches import Patch

    if figure.parts:
        patches = [
            Patch(color="black", alpha=shade, linewidth=0, label=name)
            for name, shade in zip(figure.parts, shades, strict=True)
        ]
        canvas.legend(handles=patches, loc="outside upper center", ncols=len(patches))


def _circles(figure: Figure, canvas: Canvas) -> None:
    """A ring per job, and around them where jobs together want more than the link carries."""
    from matplotlib.patches import Patch

    canvas.set_figheight(2.3 + 0.15 * len(figure.series))
    rings = len(figure.series) + 1
    each = [[series.y for series in figure.series], [series.parts[0] for series in figure.series]]
    for place, (title, values) in enumerate(zip(figure.parts, each, strict=True)):
        axes: Any = canvas.add_subplot(1, 2, place + 1, projection="polar")
        axes.set_theta_zero_location("N")
        axes.set_theta_direction(-1)
        axes.set_axis_off()
        axes.set_title(title, fontsize=7)
        excess = np.sum(values, axis=0) > (figure.y.top or 0.0)
        shown = [*zip(values, (style(x.tone)[0] for x in figure.series), strict=True),
                 (excess, palette()["l2"])]  # fmt: skip
        for ring, (own, colour) in enumerate(shown):
            edges = np.diff(np.array(own) > 0, prepend=False, append=False)
            ends = np.flatnonzero(edges) * 2 * np.pi / len(own)
            bottom = rings / 2 + ring
            axes.bar(0.0, 0.85, 2 * np.pi, bottom, align="edge", color="0.93", linewidth=0)
            axes.bar(ends[::2], 0.85, ends[1::2] - ends[::2], bottom, align="edge", color=colour,
                     linewidth=0)  # fmt: skip
        axes.set_ylim(0, 1.5 * rings)
    names = [(x.name, style(x.tone)[0]) for x in figure.series]
    handles = [Patch(color=colour, label=name) for name, colour in names]
    handles.append(Patch(color=palette()["l2"], label=f"above {figure.y.top:.4g} {figure.y.unit}"))
    canvas.legend(handles=handles, loc="outside upper center", ncols=3)


_CANVASES = {
    FigureKind.ROWS: _rows,
    FigureKind.WATERFALL: _waterfall,
    FigureKind.HEAT: _heat,
    FigureKind.CIRCLES: _circles,
}
"""How a figure of several panels is drawn."""
_AXES = {
    FigureKind.BARS: _bars,
    FigureKind.STACK: _stack,
    FigureKind.RANGES: _ranges,
    FigureKind.LINES: _lines,
}
"""How a figure of one panel is drawn."""


def cluster_timeline(run: RecordedRun, unit: DisplayUnit, canvas: Canvas) -> None:
    """Draw which machines jobs held over time, coloured by level.

    The rectangles are drawn as pixels even in SVG and PDF: a run may have hundreds of thousands.
    """
    from matplotlib.collections import PolyCollection
    from matplotlib.patches import Patch

    cluster, rows = machines(run), run.placements
    scale = unit.seconds
    levels = list(dict.fromkeys(["machine", "rack", "network", *rows.text["level"]]))
    colours = [style(f"l{index}")[0] for index in range(len(levels))]
    boxes, faces = [], []
    starts, ends = (rows["start_s"] / scale).tolist(), (rows["end_s"] / scale).tolist()
    for index, strips in enumerate(strips_of(run)):
        x0, x1 = starts[index], ends[index]
        for machine, lane, count in strips:
            y0, y1 = machine + lane / cluster.gpus, machine + (lane + count) / cluster.gpus
            boxes.append([(x0, y0), (x1, y0), (x1, y1), (x0, y1)])
            faces.append(colours[levels.index(rows.text["level"][index])])
    axes = canvas.add_subplot()
    axes.add_collection(PolyCollection(boxes, facecolors=faces, linewidths=0, rasterized=True))
    axes.set_xlim(0, max(ends))
    axes.set_ylim(cluster.count, 0)
    axes.set_xlabel(f"Time ({unit.name})")
    axes.set_ylabel("Machine")
    used = [level for level in levels if level in set(rows.text["level"])]
    handles = [Patch(color=colours[levels.index(level)], label=level) for level in used]
    canvas.legend(handles=handles, loc="outside upper center", ncols=len(handles))
