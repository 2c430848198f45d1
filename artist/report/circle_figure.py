"""Draws the unified circle of a link as the paper does (CASSINI, Figs. 3 to 5)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from artist.io.figures import new_figure, save_figure
from artist.policies.cassini.job_circle import Circle, Floats
from artist.policies.cassini.score import link_circle
from artist.policies.cassini.time_shifts import Solution, SolverOptions

_HOLE = 2.0  # the inner radius; a job's ring is 1 wide
_RING = 0.85
_MOST_SECTORS = 360


def plot_circle(
    circles: Sequence[Circle],
    names: Sequence[str],
    capacity: float,
    solution: Solution,
    options: SolverOptions,
    path: Path,
) -> None:
    """Two circles, all jobs in step and at their time-shifts; a ring per job, 0 on the right.

    The darker an arc, the larger the demand. The outer ring shows in red where jobs together want
    more than the capacity. Jobs off the circle are not drawn.

    Raises:
        ConfigError: matplotlib is missing, or the format is not known.
        OSError: the file cannot be written.
    """
    figure = new_figure()
    still = [0.0] * len(circles)
    for place, (title, shifts_s) in enumerate((("in step", still), ("shifted", solution.shifts_s))):
        delayed = [circle.delayed(by_s) for circle, by_s in zip(circles, shifts_s, strict=True)]
        link = link_circle(delayed, capacity, options.periods, options.angle_deg)
        score = link.score([0] * len(link.demands))
        axes: Any = figure.add_subplot(1, 2, place + 1, projection="polar")
        axes.set_axis_off()
        axes.set_title(f"{title}: score {score:.2f}")
        for ring, (job, demand) in enumerate(zip(link.perimeter.jobs, link.demands, strict=True)):
            label = f"{names[job]}, shift {1e3 * solution.shifts_s[job]:.1f} ms"
            _draw_ring(axes, ring, demand / max(capacity, demand.max()), f"C{ring % 10}", label)
        total = link.total([0] * len(link.demands))
        excess = np.maximum(total - capacity, 0.0)
        _draw_ring(axes, len(link.demands), excess / max(excess.max(), 1e-12), "red", "excess")
        if place:
            axes.legend(loc="upper center", bbox_to_anchor=(0.0, 0.0), fontsize="small")
    figure.suptitle(f"a turn is {1e3 * solution.period_s:g} ms")
    save_figure(figure, path)


def _draw_ring(axes: Any, ring: int, shade: Floats, colour: str, label: str) -> None:
    """One ring: a bar per angle, as opaque as `shade` says; many angles are drawn together."""
    if len(shade) > _MOST_SECTORS:
        starts = np.linspace(0, len(shade), _MOST_SECTORS, endpoint=False).astype(np.int64)
        sizes = np.diff(np.append(starts, len(shade)))
        shade = np.minimum(np.add.reduceat(shade, starts) / sizes, 1.0)
    width = 2 * math.pi / len(shade)
    bottom = _HOLE + ring
    axes.bar(0.0, 0.0, color=colour, label=label)
    angles = np.arange(len(shade)) * width
    axes.bar(2 * np.pi * np.arange(72) / 72, _RING, np.pi / 36, bottom, align="edge", color="0.95")
    up = np.flatnonzero(shade > 0)
    bars = axes.bar(angles[up], _RING, width, bottom, align="edge", color=colour, linewidth=0)
    for bar, alpha in zip(bars, shade[up], strict=True):
        bar.set_alpha(float(alpha))
