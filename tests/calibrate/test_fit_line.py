from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from artist.calibrate.fit_line import fit_line
from artist.calibrate.nccl_log import read_log
from artist.errors import TraceError

SIZES = [2**power for power in range(10, 31)]


def _points(alpha: float, beta: float, noise: float, seed: int = 0) -> list[tuple[float, float]]:
    rng = np.random.default_rng(seed)
    return [
        (float(size), (alpha + beta * size) * (1 + noise * rng.standard_normal()))
        for size in SIZES
        for _ in range(2)
    ]


def test_exact_times_give_the_line_back() -> None:
    line = fit_line(_points(20.0, 1e-5, noise=0.0), "x")
    assert line.alpha_us.value == pytest.approx(20.0)
    assert line.beta_us_per_byte.value == pytest.approx(1e-5)
    assert line.outliers == 0


@pytest.mark.parametrize(("alpha", "beta"), [(20.0, 1e-5), (3.0, 4e-6), (60.0, 5e-5)])
def test_99_percent_intervals_cover_the_truth(
    write_log: Callable[..., Path], alpha: float, beta: float
) -> None:
    """Logs with 3 % noise: at least 95 of 100 seeds each (99 are expected)."""
    lines = []
    for seed in range(100):
        path = write_log(alpha_us=alpha, beta_us_per_byte=beta, noise=0.03, seed=seed)
        lines.append(fit_line(read_log(path).points(), str(path)))
    assert sum(x.alpha_us.low <= alpha <= x.alpha_us.high for x in lines) >= 95
    bands = [x.beta_us_per_byte for x in lines]
    assert sum(band.low <= beta <= band.high for band in bands) >= 95


def test_single_slow_runs_do_not_tilt_the_line() -> None:
    points = _points(20.0, 1e-5, noise=0.01)
    for index in (3, 17, 30, 41):
        points[index] = (points[index][0], points[index][1] * 3)
    line = fit_line(points, "x")
    assert line.alpha_us.value == pytest.approx(20.0, rel=0.02)
    assert line.beta_us_per_byte.value == pytest.approx(1e-5, rel=0.02)
    assert line.outliers >= 4


def test_too_few_points_are_refused() -> None:
    with pytest.raises(TraceError, match=r"x: 4 measurements of 2 sizes, expected 6"):
        fit_line([(1.0, 1.0), (1.0, 1.0), (2.0, 2.0), (2.0, 2.0)], "x")


def test_a_time_that_falls_with_the_size_is_refused() -> None:
    with pytest.raises(TraceError, match="does not grow with the size"):
        fit_line([(float(size), 100.0 - size) for size in range(1, 11)], "x")
