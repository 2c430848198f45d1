"""Pictures of a study's page as SVG. The same rows give the same bytes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from artist.io.figures import draw_to

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

WIDTH_IN = 7.2
STYLE: Any = {
    "font.size": 8, "axes.labelsize": 8, "legend.fontsize": 7, "xtick.labelsize": 7,
    "ytick.labelsize": 7, "axes.spines.top": False, "axes.spines.right": False,
    "axes.linewidth": 0.6, "grid.linewidth": 0.4, "grid.color": "#dddddd", "axes.axisbelow": True,
    "legend.frameon": False, "lines.linewidth": 1.1, "text.parse_math": False,
    "svg.fonttype": "none", "svg.hashsalt": "artist",
}  # fmt: skip


def save(path: Path, height_in: float, paint: Callable[[Canvas], None]) -> None:
    """Draw a picture as wide as a page. `paint` draws on an empty canvas."""
    import matplotlib
    from matplotlib.figure import Figure as Canvas

    with matplotlib.rc_context(STYLE):
        canvas = Canvas(figsize=(WIDTH_IN, height_in), layout="constrained")
        paint(canvas)
        draw_to(canvas, path, "svg")
