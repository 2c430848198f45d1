"""Single figures that commands draw with `--plot`: sweeps, fits, and circles of jobs on a link."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from artist.calibrate.fit_fabric import FabricFit
from artist.estimates.sensitivity import Point, ScalingPoint, SettingSweep
from artist.io.figures import new_figure, save_figure
from artist.policies.cassini.job_circle import Circle, Floats
from artist.policies.cassini.time_shifts import Solution, SolverOptions, shifted


def plot_sweep(sweep: SettingSweep, points: Sequence[Point], workload: str, path: Path) -> None:
    """Draw a line per placement with matplotlib: iteration time over the setting.

    The present value is marked.

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


def plot_scaling(
    points: Sequence[ScalingPoint], workload: str, path: Path, goodput_of_one: float
) -> None:
    """Draw speedups over the number of GPUs: as the latency model has them, of goodput, and ideal.

    Those of goodput are over `base_gpus` of the points times `goodput_of_one`, which is the goodput
    of one GPU in useful samples per second.

    Raises:
        ConfigError: matplotlib is missing, or the format is not known.
        OSError: the file cannot be written.
    """
    figure = new_figure()
    axes = figure.add_subplot()
    gpus = [point.gpus for point in points]
    ideal = [point.gpus / point.base_gpus for point in points]
    axes.plot(gpus, ideal, "--", color="0.4", linewidth=1, label="ideal")
    axes.plot(gpus, [point.speedup for point in points], "o-", ms=3, label="latency model")
    useful = [(point.gpus, point.useful) for point in points if point.useful is not None]
    if useful:
        unit = goodput_of_one * points[0].base_gpus
        counts = [count for count, _ in useful]
        axes.plot(counts, [x.goodput_per_s / unit for _, x in useful], "s-", ms=3, label="goodput")
        throughput = [x.samples_per_s / unit for _, x in useful]
        axes.plot(counts, throughput, "^-", ms=3, label="samples of its batches")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:g}")
    axes.set_title(f"{workload}: scaling")
    axes.set_xlabel("GPUs")
    axes.set_ylabel("speedup")
    axes.grid(True, which="major", alpha=0.3)
    axes.legend()
    save_figure(figure, path)


def plot_fabric(fit: FabricFit, path: Path) -> None:
    """Draw the measured times over the size, the fitted line and its confidence band.

    Raises:
        ConfigError: matplotlib is missing, or the file cannot be written.
    """
    sizes = sorted({size for size, _ in fit.log.points()})
    alpha, beta = fit.line.alpha_us, fit.line.beta_us_per_byte
    figure = new_figure()
    axes = figure.add_subplot()
    axes.loglog(*zip(*fit.log.points(), strict=True), "o", ms=4, label="measured")
    axes.loglog(sizes, [fit.line.time_us(size) for size in sizes], "-", label="alpha + beta S")
    low = [max(alpha.low, 1e-3) + max(beta.low, 0) * size for size in sizes]
    high = [alpha.high + beta.high * size for size in sizes]
    axes.fill_between(sizes, low, high, alpha=0.25, label="99 % confidence")
    level = fit.level
    axes.set_title(
        f"{fit.log.operation} on {level.placement}: {level.bandwidth_gib_per_s.value:.4g} GiB/s, "
        f"{level.latency_ns.value:.4g} ns"
    )
    axes.set_xlabel("size, bytes")
    axes.set_ylabel("time, us")
    axes.grid(True, which="major", alpha=0.3)
    axes.legend()
    save_figure(figure, path)


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
    """Draw two circles of a link (CASSINI, Figs. 3 to 5): jobs in step, and at their time-shifts.

    A job is a ring, with 0 on the right. The darker an arc, the larger the demand. The outer ring
    shows in red where jobs together want more than the capacity. Jobs off the circle are not drawn.

    Raises:
        ConfigError: matplotlib is missing, or the format is not known.
        OSError: the file cannot be written.
    """
    figure = new_figure()
    still = [0.0] * len(circles)
    for place, (title, shifts_s) in enumerate((("in step", still), ("shifted", solution.shifts_s))):
        link = shifted(circles, capacity, shifts_s, options)
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
