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

from artist.report.figure import TIME_TICKS, Figure, Kind, Series, time_unit
from artist.report.reader import Run
from artist.report.timeline_lanes import machines, strips_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas


PART_SHADES = (1.0, 0.5, 0.2)
"""Opacities of the parts of a series, from the axis upwards; the style sheet has the same."""


@cache
def palette() -> Mapping[str, str]:
    """The page's light colours by name, e.g. `s0`. Only the style sheet lists them."""
    css = files("artist.report").joinpath("assets", "page.css").read_text(encoding="utf-8")
    return dict(re.findall(r"--([slo]\d): (#[0-9a-f]{6});", css))


def style(tone: str) -> tuple[str, bool]:
    """The colour of a tone, and whether an earlier tone has the same colour.

    The page has eight policy colours, so `s8` has the colour of `s0`.
    """
    family, index = tone[0], int(tone[1:])
    count = sum(name[0] == family for name in palette())
    return palette()[f"{family}{index % count}"], index >= count


def draw(figure: Figure, canvas: Canvas) -> None:
    """Draw a figure without its title: a paper has captions."""
    if figure.kind is Kind.ROWS:
        _rows(figure, canvas)
        return
    axes = canvas.add_subplot()
    if figure.kind is Kind.BARS:
        _bars(figure, axes)
    elif figure.kind is Kind.STACK:
        _stack(figure, axes)
    else:
        _lines(figure, axes)
    if len(figure.series) > 1:
        columns = min(3, len(figure.series))
        canvas.legend(
            loc="outside upper center", ncols=columns, handlelength=1.2, columnspacing=1.2
        )


def _lines(figure: Figure, axes: Axes) -> None:
    for series in figure.series:
        colour, again = style(series.tone)
        options: dict[str, Any] = {"drawstyle": "steps-post"} if figure.step else {}
        if figure.broad:
            options |= {"linewidth": 3.0, "solid_capstyle": "butt"}
        x, y = np.array(series.x), np.array(series.y)
        axes.plot(x, y, color=colour, linestyle="--" if again else "-", label=series.name,
                  **options)  # fmt: skip
    axes.set_ylim(0, figure.y.top)
    if figure.x.time_log:
        axes.set_xscale("log")
        low, high = axes.get_xlim()
        inside = [(at, label) for at, label in TIME_TICKS if low <= at <= high]
        axes.set_xticks([at for at, _ in inside], [label for _, label in inside])
        axes.minorticks_off()
    else:
        axes.set_xlim(left=0)
    axes.grid(visible=True)
    axes.set_xlabel(figure.x.title)
    axes.set_ylabel(figure.y.title)


def _bars(figure: Figure, axes: Axes) -> None:
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
    axes.set_yticks(places, list(figure.categories))
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=True, axis="x")
    axes.set_xlabel(figure.x.title)


def _rows(figure: Figure, canvas: Canvas) -> None:
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


def cluster_timeline(run: Run, canvas: Canvas) -> None:
    """Draw which machines jobs held over time, coloured by level.

    The rectangles are drawn as pixels even in SVG and PDF: a run may have hundreds of thousands.
    """
    from matplotlib.collections import PolyCollection
    from matplotlib.patches import Patch

    cluster, rows = machines(run), run.placements
    scale, unit = time_unit(float(rows["end_s"].max()))
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
    axes.set_xlabel(f"Time ({unit})")
    axes.set_ylabel("Machine")
    used = [level for level in levels if level in set(rows.text["level"])]
    handles = [Patch(color=colours[levels.index(level)], label=level) for level in used]
    canvas.legend(handles=handles, loc="outside upper center", ncols=len(handles))
