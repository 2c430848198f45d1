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


def test_copies_that_differ_by_rounding_have_no_verdict() -> None:
    # Both policies end jobs at equal times in every order; only the order of the sums differs.
    comparison = compare(SMALL, ["sjf", "srtf"], seeds=1, permutations=6)
    verdicts = [one.verdict for one in comparison.differences["srtf"].values()]
    assert set(verdicts) <= {"identical", "too few replicates"}
    assert comparison.without_interval == verdicts.count("too few replicates") > 0


def test_seeds_with_one_permutation_sample_the_orders_too() -> None:
    base = DRAWN.model_copy(update={"seed": 3, "permutation": 2})
    comparison = compare(base, ["fifo", "srtf"], seeds=3, permutations=1)
    assert comparison.replicates == ((3, 2), (4, 3), (5, 4))
    assert comparison.independent == 3


@pytest.mark.parametrize(
    ("seeds", "permutations", "words", "kind"),
    [
        (2, 3, "2 seeds x 3 permutations = 2 independent replicates", "seeds"),
        (1, 3, "1 seed x 3 permutations = 3 independent replicates", "permutations"),
        (2, 1, "2 seeds, each with a permutation of its own = 2 independent replicates", "seeds"),
    ],
)
def test_the_design_in_words(seeds: int, permutations: int, words: str, kind: str) -> None:
    comparison = compare(DRAWN, ["fifo", "srtf"], seeds=seeds, permutations=permutations)
    assert (comparison.design, comparison.kind) == (words, kind)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"permutations": 0, "until": 0.02}, "--permutations 0: at least 1"),
        ({"permutations": -3, "until": 0.02}, "--permutations -3: at least 1"),
        ({"seeds": 0, "until": 0.02}, "--seeds 0"),
        ({"equivalence": 2.0}, "--equivalence 2: expected"),
    ],
)
def test_senseless_options_are_refused_before_anything_runs(options, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        compare(SMALL, ["fifo", "srtf"], **{"seeds": 1, "permutations": 1, **options})


@pytest.mark.parametrize(
    ("policies", "seeds"), [(["fifo"], 1), (["fifo", "fifo"], 1), (["fifo", "las"], 0)]
)
def test_senseless_comparisons_are_refused(policies: list[str], seeds: int) -> None:
    with pytest.raises(ConfigError):
        compare(SMALL, policies, seeds=seeds, permutations=1)
