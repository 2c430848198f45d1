"""Draws where a network hurts with matplotlib (extra `plot`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from artist.estimates.sensitivity import Point, Sweep
from artist.io.figures import new_figure, save_figure


def plot_sweep(sweep: Sweep, points: Sequence[Point], workload: str, path: Path) -> None:
    """A line per placement: iteration time over the setting; the present value is marked.

    Raises:
        ConfigError: matplotlib is missing, or the format is not known.
        OSError: the file cannot be written.
    """
    figure = new_figure()
    axes = figure.add_subplot()
    for placement in dict.fromkeys(point.placement for point in points):
        line = [point for point in points if point.placement == placement]
        values = [point.value for point in line]
        axes.plot(values, [1000 * p.iteration_s for p in line], "o-", ms=3, label=placement)
    present = next(point.value for point in points if point.present)
    axes.axvline(present, color="0.4", linestyle="--", linewidth=1, label="present value")
    if sweep.logarithmic and present > 0:
        axes.set_xscale("log")
    axes.set_title(f"{workload}: one iteration")
    axes.set_xlabel(sweep.setting)
    axes.set_ylabel("iteration time, ms")
    axes.set_ylim(bottom=0)
    axes.grid(True, which="major", alpha=0.3)
    axes.legend(title="placement")
    save_figure(figure, path)
