"""Do the bootstrap intervals of reports cover the mean about as often as they say?"""

from __future__ import annotations

import numpy as np
import pytest

from artist.results.bootstrap import Difference, bootstrap


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(-0.2, -0.1, "less"), (0.1, 0.2, "more"), (-0.1, 0.1, "within noise")],
)
def test_verdicts(low: float, high: float, verdict: str) -> None:
    assert Difference("x", 0.0, low, high).verdict == verdict


def test_the_interval_covers_the_mean_of_many_values() -> None:
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(200):
        low, high = bootstrap(rng.normal(0.0, 1.0, 40), "test")
        covered += low <= 0 <= high
    assert 180 <= covered <= 199  # 95 % of 200, a little less for 40 values
