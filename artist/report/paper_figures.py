"""Writes every figure as SVG, PNG or PDF for papers; needs matplotlib (extra `[plot]`).

`drawing.py` draws each figure.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from artist.errors import ConfigError
from artist.io.figures import draw_to
from artist.io.optional_libraries import check_import
from artist.io.partials import remove_leftovers
from artist.io.writing import refuse_special, scratch_folder, sync
from artist.report.drawing import cluster_timeline, draw
from artist.report.figure import named
from artist.report.grouping import Study
from artist.report.page import figures
from artist.report.quantities import Quantity

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

WIDTH_IN = 3.5
"""The width of a column in a two-column paper, in inches."""
STYLE: Any = {
    "font.size": 8, "axes.titlesize": 8, "axes.labelsize": 8, "legend.fontsize": 7,
    "xtick.labelsize": 7, "ytick.labelsize": 7, "axes.spines.top": False,
    "axes.spines.right": False, "axes.linewidth": 0.6, "lines.linewidth": 1.1,
    "grid.linewidth": 0.4,
    "grid.color": "#dddddd", "axes.axisbelow": True, "legend.frameon": False, "savefig.dpi": 300,
    # A "$" in a name is not a formula. Text stays text, so that it can be searched and edited. A
    # fixed salt makes the ids in an SVG the same every time.
    "text.parse_math": False,
    "svg.fonttype": "none", "pdf.fonttype": 42, "svg.hashsalt": "artist",
}  # fmt: skip


def check_folder(folder: Path, *, overwrite: bool = False) -> None:
    """Check before the work that matplotlib is installed and the folder can be written.

    The folder is new or empty. With `overwrite` figures replace files of their names; others stay.

    Raises:
        ConfigError: matplotlib is missing, or the folder is a file, holds files or is not writable.
    """
    check_import("--figures", "matplotlib.figure", extra="plot")
    parent = folder if folder.is_dir() else folder.absolute().parent
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"--figures {folder}: is a file; give a folder")
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise ConfigError(f"--figures {folder}: {parent} is not a writable folder")
    if folder.is_dir() and not overwrite and any(folder.iterdir()):
        raise ConfigError(
            f"--figures {folder}: holds files already; choose another folder, or replace files of "
            "the same names with --overwrite"
        )


def write_figures(study: Study, folder: Path, format_: str, *, overwrite: bool = False) -> int:
    """Write all figures to a folder and return their number.

    They are drawn into a temporary folder beside it and moved when all are complete.

    Raises:
        ConfigError: the figures cannot be written.
    """
    check_folder(folder, overwrite=overwrite)
    try:
        remove_leftovers(folder)
        with scratch_folder(folder) as scratch:
            for name, canvas in _drawn(study):
                draw_to(canvas, scratch / f"{name}.{format_}", format_, bbox_inches="tight")
            written = sorted(scratch.iterdir())
            for file in written:
                refuse_special(folder / file.name)
                sync(file)
            folder.mkdir(exist_ok=True)
            for file in written:
                file.replace(folder / file.name)
            return len(written)
    except OSError as cause:
        raise ConfigError(
            f"--figures {folder}: cannot be written ({cause.strerror or cause})"
        ) from cause


def _drawn(study: Study) -> Iterator[tuple[str, Canvas]]:
    """Every figure with its name, the cluster timelines last."""
    import matplotlib
    from matplotlib.figure import Figure as Canvas

    with matplotlib.rc_context(STYLE):
        for figure in figures(study):
            canvas = Canvas(figsize=(WIDTH_IN, 2.3), layout="constrained")
            draw(figure, canvas)
            yield figure.name, canvas
        for setting in study.settings:
            for policy in setting.runs:
                canvas = Canvas(figsize=(2 * WIDTH_IN, 3.0), layout="constrained")
                cluster_timeline(setting.firsts[policy], study.units[Quantity.TIME], canvas)
                yield named("cluster-timeline", setting.slug, study.policy_slug(policy)), canvas
