"""Robust linear regression of the time of a collective on its size S in bytes.

    t(S) = alpha + beta S

Measurement errors grow with the time, so the residuals are relative:
r = (t - alpha - beta S) / (alpha + beta S). A few slow runs, and the bends where NCCL changes its
protocol, must not tilt the line. So the line is Huber's M-estimate, by iteratively reweighted
least squares. Its covariance is (Huber, Robust Statistics, 1981, chapter 7)

    K^2 s^2 [mean psi(u)^2 n / (n - p)] / [mean psi'(u)]^2 (X'X)^-1,   u = r / s

with n points, p = 2 parameters, psi Huber's function, K the correction for few points, and s the
scale of the residuals from their median absolute deviation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from artist.errors import TraceError
from artist.results.statistics.students_t import expanded_quantile

CONFIDENCE = 0.99
MIN_POINTS = 6

# The bound of Huber's function. With 1.345 the estimate has 95 % of the efficiency of least squares
# if the errors are normal (Huber 1981).
_HUBER = 1.345
# The standard deviation over the median absolute deviation, for normal errors.
_MAD_TO_SIGMA = 1.4826

Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FittedValue:
    """A fitted number with its confidence interval (`CONFIDENCE`)."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Line:
    """The fitted line alpha + beta S.

    `spread` is the scale of the relative residuals. `outliers` is the number of points whose
    weight is at most one half.
    """

    alpha_us: FittedValue
    beta_us_per_byte: FittedValue
    spread: float
    points: int
    outliers: int

    def time_us(self, size_bytes: float) -> float:
        """The fitted time for a size."""
        return self.alpha_us.value + self.beta_us_per_byte.value * size_bytes


def fit_line(points: Sequence[tuple[float, float]], where: str) -> Line:
    """Fit a line to points (bytes, microseconds). `where` starts the error messages.

    Raises:
        TraceError: there are too few sizes, or the time does not grow with the size.
    """
    sizes = np.array([size for size, _ in points], dtype=np.float64)
    times = np.array([time for _, time in points], dtype=np.float64)
    if len(points) < MIN_POINTS or len(set(sizes.tolist())) < MIN_POINTS // 2:
        raise TraceError(
            f"{where}: {len(points)} measurements of {len(set(sizes.tolist()))} sizes, expected "
            f"{MIN_POINTS} of {MIN_POINTS // 2} or more; sweep more sizes (-b 1K -e 1G -f 2)"
        )
    # Sizes are divided by the largest, so that both columns have similar magnitudes. Otherwise the
    # matrix could not be inverted accurately.
    unit = float(sizes.max())
    design = np.column_stack([np.ones_like(sizes), sizes / unit])
    return _line(design, times, _huber(design, times), unit, where)


def _huber(design: Vector, times: Vector) -> Vector:
    """The coefficients, by reweighted least squares on relative residuals."""
    coefficients = _solve(design / times[:, None], np.ones_like(times), np.ones_like(times))
    for _ in range(100):
        # An early line may predict times near or below zero; residuals cannot be divided by these.
        predicted = np.maximum(design @ coefficients, times.min() / 10)
        residuals = (times - design @ coefficients) / predicted
        bound = _HUBER * _scale(residuals)
        weights = np.minimum(1, bound / np.maximum(np.abs(residuals), 1e-300))
        before = coefficients
        coefficients = _solve(design / predicted[:, None], times / predicted, weights)
        if np.allclose(coefficients, before, rtol=1e-12, atol=0):
            break
    return coefficients


def _solve(design: Vector, values: Vector, weights: Vector) -> Vector:
    """Weighted least squares."""
    root = np.sqrt(weights)
    coefficients = np.linalg.lstsq(design * root[:, None], values * root, rcond=None)[0]
    return np.asarray(coefficients, dtype=np.float64)


def _scale(residuals: Vector) -> float:
    """The standard deviation estimated from the median absolute residual; above 0."""
    return max(_MAD_TO_SIGMA * float(np.median(np.abs(residuals))), 1e-12)


def _line(design: Vector, times: Vector, coefficients: Vector, unit: float, where: str) -> Line:
    """The line with its confidence intervals; sizes in `design` are in units of `unit` bytes."""
    intercept, slope = coefficients
    predicted = design @ coefficients
    if slope <= 0 or predicted.min() <= 0:
        raise TraceError(
            f"{where}: the time does not grow with the size ({slope / unit * 1e3:.3g} ns per "
            "byte), which no network does; sweep larger sizes or repeat the run"
        )
    residuals = (times - predicted) / predicted
    scale = _scale(residuals)
    standard = residuals / scale
    inside = np.abs(standard) <= _HUBER
    psi = np.clip(standard, -_HUBER, _HUBER)
    count = len(times)
    psi_slope = float(inside.mean())
    inflation = (float((psi**2).mean()) * count / (count - 2)) / psi_slope**2
    # Huber's correction K for few points.
    correction = 1 + 2 / count * (1 - psi_slope) / psi_slope
    scaled = design / predicted[:, None]
    covariance = correction**2 * scale**2 * inflation * np.linalg.inv(scaled.T @ scaled)
    reach = expanded_quantile(CONFIDENCE, count - 2) * np.sqrt(np.diag(covariance))
    return Line(
        alpha_us=FittedValue(*(float(intercept + x) for x in (0, -reach[0], reach[0]))),
        beta_us_per_byte=FittedValue(*(float(slope + x) / unit for x in (0, -reach[1], reach[1]))),
        spread=scale,
        points=count,
        outliers=int((np.abs(standard) >= 2 * _HUBER).sum()),
    )
