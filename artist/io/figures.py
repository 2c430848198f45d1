"""Writes figures that matplotlib drew (extra `plot`)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from artist.errors import ConfigError
from artist.io.writing import whole_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def new_figure() -> Figure:
    """An empty figure of a page's width.

    Raises:
        ConfigError: matplotlib is missing.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as cause:
        raise ConfigError(
            "--plot needs matplotlib; install it with: pip install 'artist-sim[plot]'"
        ) from cause
    return Figure(figsize=(7, 4.5), layout="constrained")


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure whole or not at all, in the format of the name's ending, else as PNG.

    The same figure gives the same bytes: no date, and no random names inside.

    Raises:
        ConfigError: matplotlib does not know the format.
        OSError: the file cannot be written.
    """
    from matplotlib import rc_context

    # The temporary name has no format that matplotlib knows, so it is given here.
    target = path if path.suffix else path.with_name(f"{path.name.rstrip('.')}.png")
    metadata = {"Date": None} if target.suffix == ".svg" else {}
    try:
        with whole_file(target) as partial, rc_context({"svg.hashsalt": "artist"}):
            figure.savefig(partial, format=target.suffix[1:], metadata=metadata)
    except ValueError as cause:  # a format that matplotlib does not know
        raise ConfigError(f"--plot {path}: cannot be written ({cause})") from cause
