"""Writes figures that matplotlib drew (extra `plot`)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from artist.errors import ConfigError
from artist.io.optional_libraries import check_import
from artist.io.writing import check_new_file, whole_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_METADATA: dict[str, dict[str, Any]] = {
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
    "png": {"Software": None},
}
"""Metadata that matplotlib must leave out of a format, so that equal figures have equal bytes."""


def new_figure() -> Figure:
    """An empty figure of a page's width.

    Raises:
        ConfigError: matplotlib is missing.
    """
    check_import("--plot", "matplotlib.figure", extra="plot")
    from matplotlib.figure import Figure

    return Figure(figsize=(7, 4.5), layout="constrained")


def figure_file(path: Path) -> Path:
    """The file that a figure is written to: a name without a suffix gets `.png`."""
    name = path.name.rstrip(".")
    return path.with_name(f"{name}.png") if name and not path.suffix else path


def check_figure(path: Path, *, overwrite: bool) -> None:
    """Refuse a figure that cannot be drawn or written, before the work on it begins.

    Raises:
        ConfigError: matplotlib is missing, the file is there already, or the place is not writable.
    """
    check_new_file(figure_file(path), "--plot", overwrite=overwrite)
    new_figure()


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure whole or not at all, in the format of the name's suffix, else as PNG.

    Equal figures have equal bytes: there is no date, and there are no random names inside.

    Raises:
        ConfigError: matplotlib does not know the format.
        OSError: the file cannot be written.
    """
    from matplotlib import rc_context

    # The suffix of the temporary name is not a format, so the format is given here.
    target = figure_file(path)
    form = target.suffix[1:].lower()
    try:
        with whole_file(target) as partial, rc_context({"svg.hashsalt": "artist"}):
            draw_to(figure, partial, form)
    except ValueError as cause:  # a format that matplotlib does not know
        raise ConfigError(f"--plot {path}: cannot be written ({cause})") from cause


def draw_to(figure: Figure, path: Path, form: str, **options: Any) -> None:
    """Write a figure in a format, without what would differ between runs.

    Raises:
        ValueError: matplotlib does not know the format.
        OSError: the file cannot be written.
    """
    _settle(figure)
    figure.savefig(path, format=form, metadata=_METADATA.get(form, {}), **options)


def _settle(figure: Figure) -> None:
    """Lay a figure out, and round the positions of its axes.

    The last bits of a layout differ between processors, and SVG names its clip paths after them.
    """
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axes in figure.axes:
        left, bottom, width, height = axes.get_position().bounds
        axes.set_position((round(left, 4), round(bottom, 4), round(width, 4), round(height, 4)))
