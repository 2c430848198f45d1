"""Draws circles of jobs that take turns on a link with matplotlib, in the colours of the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from artist.report.drawing import palette, style
from artist.report.figure import Figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas


def circles(figure: Figure, canvas: Canvas) -> None:
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
