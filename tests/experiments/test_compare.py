"""Does the comparison tell a difference from noise?"""

from __future__ import annotations

import pytest

from artist.config import Scenario
from artist.errors import ConfigError
from artist.experiments.compare import compare

SMALL = Scenario(racks=1, trace="tiny-batch", backend="none")
DRAWN = Scenario(racks=1, jobs=40, backend="none")


def test_values_are_paired_by_replicate_whatever_the_number_of_workers() -> None:
    one, two = (
        compare(DRAWN, ["fifo", "srtf"], seeds=2, permutations=2, workers=workers)
        for workers in (1, 2)
    )
    assert one == two
    assert one.replicates == ((0, 0), (0, 1), (1, 0), (1, 1))
    assert len(one.values["fifo"]["jct_mean_s"]) == 4


def test_a_policy_against_its_twin_is_identical() -> None:
    twin = {"order": "arrival", "preemption": "never", "strict": True}
    changed = SMALL.model_copy(update={"policy_options": twin})
    comparison = compare(changed, ["fifo", "sjf"], seeds=1, permutations=5)
    assert {one.verdict for one in comparison.differences["sjf"].values()} == {"identical"}


def test_permutations_of_one_seed_are_one_replicate() -> None:
    comparison = compare(DRAWN, ["fifo", "srtf"], seeds=2, permutations=3)
    one = comparison.differences["srtf"]["jct_mean_s"]
    assert (one.replicates, one.verdict) == (2, "too few replicates")


def test_seeds_that_draw_nothing_are_refused() -> None:
    with pytest.raises(ConfigError, match="same for every seed; vary --permutations"):
        compare(SMALL, ["fifo", "srtf"], seeds=2, permutations=1)


@pytest.mark.parametrize(
    ("policies", "seeds"), [(["fifo"], 1), (["fifo", "fifo"], 1), (["fifo", "las"], 0)]
)
def test_senseless_comparisons_are_refused(policies: list[str], seeds: int) -> None:
    with pytest.raises(ConfigError):
        compare(SMALL, policies, seeds=seeds, permutations=1)
