"""Single figures that commands draw with `--plot`: a sweep of a fabric's setting, and a fit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from artist.calibrate.fit_fabric import FabricFit
from artist.estimates.sensitivity import Point, ScalingPoint, SettingSweep
from artist.io.figures import new_figure, save_figure


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


def plot_scaling(points: Sequence[ScalingPoint], workload: str, path: Path) -> None:
    """Draw speedups over the number of GPUs: as the latency model has them, of goodput, and ideal.

    Goodput is drawn over that on the fewest GPUs.

    Raises:
        ConfigError: matplotlib is missing, or the format is not known.
        OSError: the file cannot be written.
    """
    figure = new_figure()
    axes = figure.add_subplot()
    gpus = [point.gpus for point in points]
    axes.loglog(gpus, gpus, "--", color="0.4", linewidth=1, base=2, label="ideal")
    axes.loglog(gpus, [point.speedup for point in points], "o-", ms=3, label="latency model")
    useful = [(point.gpus, point.useful) for point in points if point.useful is not None]
    if useful:
        first = useful[0][0] / useful[0][1].goodput_per_s
        counts = [count for count, _ in useful]
        axes.loglog(
            counts, [x.goodput_per_s * first for _, x in useful], "s-", ms=3, label="goodput"
        )
        throughput = [x.samples_per_s * first for _, x in useful]
        axes.loglog(counts, throughput, "^-", ms=3, label="samples of its batches")
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
