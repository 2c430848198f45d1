"""Draws the fit of a fabric level with matplotlib (extra `plot`)."""

from __future__ import annotations

from pathlib import Path

from artist.calibrate.fit_fabric import FabricFit
from artist.io.figures import new_figure, save_figure


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
