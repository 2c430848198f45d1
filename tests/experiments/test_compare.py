"""Does the comparison tell a difference from noise?"""

from __future__ import annotations

import numpy as np
import pytest

from artist.config import Scenario
from artist.errors import ConfigError
from artist.experiments.compare import Difference, bootstrap, compare

SMALL = Scenario(racks=1, trace="tiny-batch", backend="none")


def test_values_are_paired_by_replicate_whatever_the_number_of_workers() -> None:
    one, two = (
        compare(SMALL, ["fifo", "srtf"], seeds=2, permutations=2, workers=workers)
        for workers in (1, 2)
    )
    assert one == two
    assert one.replicates == ((0, 0), (0, 1), (1, 0), (1, 1))
    assert len(one.values["fifo"]["jct_mean_s"]) == 4


def test_a_policy_against_its_twin_is_within_noise() -> None:
    twin = {"order": "arrival", "preemption": "never", "strict": True}
    changed = SMALL.model_copy(update={"policy_options": twin})
    comparison = compare(changed, ["fifo", "sjf"], seeds=1, permutations=2)
    assert {d.verdict for d in comparison.differences["sjf"]} == {"within noise"}


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(-0.2, -0.1, "less"), (0.1, 0.2, "more"), (-0.1, 0.1, "within noise")],
)
def test_verdicts(low: float, high: float, verdict: str) -> None:
    assert Difference("x", 0.0, low, high).verdict == verdict


def test_one_replicate_decides_nothing() -> None:
    comparison = compare(SMALL, ["fifo", "srtf"], seeds=1, permutations=1)
    assert {d.verdict for d in comparison.differences["srtf"]} == {"one replicate"}


def test_bootstrap_interval_covers_the_mean_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(200):
        low, high = bootstrap(rng.normal(0.0, 1.0, 40), "test")
        covered += low <= 0 <= high
    assert 180 <= covered <= 199  # 95 % of 200, a little less for 40 values


@pytest.mark.parametrize(
    ("policies", "seeds"), [(["fifo"], 1), (["fifo", "fifo"], 1), (["fifo", "las"], 0)]
)
def test_senseless_comparisons_are_refused(policies: list[str], seeds: int) -> None:
    with pytest.raises(ConfigError):
        compare(SMALL, policies, seeds=seeds, permutations=1)
