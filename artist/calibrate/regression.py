"""Time of a message or collective over its size: t(S) = alpha + beta S, robustly.

Errors are taken as relative (a measurement of 1 s is not a thousand times surer than
one of 1 ms), so residuals are r = (t - alpha - beta S) / (alpha + beta S). Huber's
M-estimator, by reweighted least squares, keeps single slow runs and the bends between
protocols from tilting the line (Huber, Robust Statistics, 1981, chapter 7):

    covariance = K s^2 [mean psi(u)^2 n / (n - p)] / [mean psi'(u)]^2 (X'X)^-1,   u = r / s

with s the scale of the residuals from their median absolute deviation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from artist.errors import TraceError

CONFIDENCE = 0.99
MIN_POINTS = 6

# 95 % efficiency where errors are normal (Huber 1981).
_HUBER = 1.345
_MAD_TO_SIGMA = 1.4826

Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its confidence interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Line:
    """alpha in us, beta in us per byte. `spread` is the residuals' scale, relative.

    `outliers` counts points that Huber's function weighs down by half or more.
    """

    alpha_us: Interval
    beta_us_per_byte: Interval
    spread: float
    points: int
    outliers: int

    def time_us(self, size_bytes: float) -> float:
        """The fitted time."""
        return self.alpha_us.value + self.beta_us_per_byte.value * size_bytes


def fit_line(points: Sequence[tuple[float, float]], where: str) -> Line:
    """Fit (bytes, microseconds).

    Raises:
        TraceError: too few sizes, or the time does not grow with the size.
    """
    sizes = np.array([size for size, _ in points], dtype=np.float64)
    times = np.array([time for _, time in points], dtype=np.float64)
    if len(points) < MIN_POINTS or len(set(sizes.tolist())) < MIN_POINTS // 2:
        raise TraceError(
            f"{where}: {len(points)} measurements of {len(set(sizes.tolist()))} sizes, expected "
            f"{MIN_POINTS} of {MIN_POINTS // 2} or more; sweep more sizes (-b 1K -e 1G -f 2)"
        )
    # Bytes in units of the largest keep the normal equations well conditioned.
    unit = float(sizes.max())
    design = np.column_stack([np.ones_like(sizes), sizes / unit])
    return _line(design, times, _huber(design, times), unit, where)


def _huber(design: Vector, times: Vector) -> Vector:
    """Coefficients by reweighted least squares on relative residuals."""
    found = _solve(design / times[:, None], np.ones_like(times), np.ones_like(times))
    for _ in range(100):
        predicted = np.maximum(design @ found, times.min() / 10)
        residuals = (times - design @ found) / predicted
        bound = _HUBER * _scale(residuals)
        weights = np.minimum(1, bound / np.maximum(np.abs(residuals), 1e-300))
        before = found
        found = _solve(design / predicted[:, None], times / predicted, weights)
        if np.allclose(found, before, rtol=1e-12, atol=0):
            break
    return found


def student(confidence: float, degrees: int) -> float:
    """Two-sided quantile of Student's t (Cornish-Fisher; within 1 % from 4 degrees on)."""
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    n = degrees
    terms = (
        z,
        (z**3 + z) / (4 * n),
        (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2),
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3),
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / (92160 * n**4),
    )
    return math.fsum(terms)


def _solve(design: Vector, values: Vector, weights: Vector) -> Vector:
    root = np.sqrt(weights)
    found = np.linalg.lstsq(design * root[:, None], values * root, rcond=None)[0]
    return np.asarray(found, dtype=np.float64)


def _scale(residuals: Vector) -> float:
    return max(_MAD_TO_SIGMA * float(np.median(np.abs(residuals))), 1e-12)


def _line(design: Vector, times: Vector, found: Vector, unit: float, where: str) -> Line:
    predicted = design @ found
    if found[1] <= 0 or predicted.min() <= 0:
        raise TraceError(
            f"{where}: the time does not grow with the size ({found[1] / unit * 1e3:.3g} ns per "
            "byte), which no network does; sweep larger sizes or repeat the run"
        )
    residuals = (times - predicted) / predicted
    scale = _scale(residuals)
    standard = residuals / scale
    inside = np.abs(standard) <= _HUBER
    psi = np.clip(standard, -_HUBER, _HUBER)
    count = len(times)
    slope = float(inside.mean())
    inflation = (float((psi**2).mean()) * count / (count - 2)) / slope**2
    # Huber's correction for few points.
    correction = 1 + 2 / count * (1 - slope) / slope
    scaled = design / predicted[:, None]
    covariance = correction**2 * scale**2 * inflation * np.linalg.inv(scaled.T @ scaled)
    reach = student(CONFIDENCE, count - 2) * np.sqrt(np.diag(covariance))
    return Line(
        alpha_us=Interval(*(float(found[0] + x) for x in (0, -reach[0], reach[0]))),
        beta_us_per_byte=Interval(*(float(found[1] + x) / unit for x in (0, -reach[1], reach[1]))),
        spread=scale,
        points=count,
        outliers=int((np.abs(standard) >= 2 * _HUBER).sum()),
    )
