"""Calibrates a fabric: fits the numbers of one level to a log and makes a new fabric of them.

`fit_line.py` fits a line to the log, and `fit_bandwidth_and_latency.py` turns the line into numbers
of the level.
"""

from __future__ import annotations

from dataclasses import dataclass

from artist.calibrate.fit_bandwidth_and_latency import FittedLevel, fit_level, with_level
from artist.calibrate.fit_line import CONFIDENCE, Line, fit_line
from artist.calibrate.nccl_log_reader import Log
from artist.cluster.fabric import Fabric
from artist.errors import ConfigError, did_you_mean
from artist.estimates.query import LatencyBackend


@dataclass(frozen=True, slots=True)
class FabricFit:
    """A log, the line fitted to it, the level that follows from the line, and the new fabric."""

    log: Log
    line: Line
    level: FittedLevel
    fabric: Fabric

    @property
    def facts(self) -> dict[str, float | int | str]:
        """The facts to print. Names end in the unit; `low` and `high` bound an interval."""
        alpha, beta = self.line.alpha_us, self.line.beta_us_per_byte
        bandwidth, latency = self.level.bandwidth_gib_per_s, self.level.latency_ns
        return {
            "fabric": self.fabric.name,
            "level": self.level.level,
            "operation": self.log.operation,
            "placement": self.level.placement,
            "alpha_us": alpha.value,
            "alpha_low_us": alpha.low,
            "alpha_high_us": alpha.high,
            "algbw_gb_per_s": 1e-3 / beta.value,
            "algbw_low_gb_per_s": 1e-3 / beta.high,
            # If the slope's interval reaches below zero, no bandwidth is too high.
            "algbw_high_gb_per_s": 1e-3 / beta.low if beta.low > 0 else float("inf"),
            "bandwidth_gib_per_s": bandwidth.value,
            "bandwidth_low_gib_per_s": bandwidth.low,
            "bandwidth_high_gib_per_s": bandwidth.high,
            "latency_ns": latency.value,
            "latency_low_ns": latency.low,
            "latency_high_ns": latency.high,
            "smallest_error": self.level.smallest_error,
            "confidence": CONFIDENCE,
            "points": self.line.points,
            "outliers": self.line.outliers,
            "spread": self.line.spread,
        }


def calibrate_fabric(
    log: Log, name: str, base: Fabric, level: str, backend: LatencyBackend
) -> FabricFit:
    """Fit one level of the fabric `base` to a log. The new fabric is called `name`.

    Raises:
        ConfigError: the fabric has no such level.
        TraceError: the log was not measured on this level, or no line fits the log.
    """
    if level not in base.level_names:
        hint = did_you_mean(level, base.level_names)
        raise ConfigError(f"--level {level!r}: fabric {base.name!r} has no such level; {hint}")
    line = fit_line(log.points(), str(log.path))
    fitted = fit_level(log, line, base, level, backend)
    changed = with_level(
        base,
        level,
        _six_digits(fitted.latency_ns.value),
        _six_digits(fitted.bandwidth_gib_per_s.value),
    )
    levels = tuple(
        one.model_copy(update={"source": _source(log, line, fitted)}) if one.name == level else one
        for one in changed.levels
    )
    # The base's calibration was fitted on the base's links.
    update = {"name": name, "levels": levels, "calibration": None}
    return FabricFit(log, line, fitted, changed.model_copy(update=update))


def _source(log: Log, line: Line, fitted: FittedLevel) -> str:
    bandwidth, latency = fitted.bandwidth_gib_per_s, fitted.latency_ns
    return (
        f"{log.operation} of nccl-tests on {len(log.hosts)} host(s) of {log.hosts[0]} GPUs, "
        f"{log.path.name} ({log.digest}); alpha {line.alpha_us.value:.4g} us, "
        f"{1e-3 / line.beta_us_per_byte.value:.4g} GB/s; {CONFIDENCE:.0%} confidence: bandwidth "
        f"{bandwidth.low:.4g} to {bandwidth.high:.4g} GiB/s, latency {latency.low:.4g} to "
        f"{latency.high:.4g} ns"
    )


def _six_digits(value: float) -> float:
    return float(f"{value:.6g}")
