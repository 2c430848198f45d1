"""Does a verdict hold what its level promises? Against nulls, theory and itself exchanged."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import artist
from artist.config import Scenario
from artist.errors import ConfigError
from artist.results.compare_values import ComparedValues, compare_values, holm
from artist.results.students_t import t_probability, t_quantile
from artist.run import simulate

FIVE = [100.0, 110.0, 95.0, 103.0, 99.0]


@pytest.mark.parametrize(
    ("degrees", "quantile"),
    [(1, 12.7062), (2, 4.30265), (4, 2.77645), (5, 2.57058), (19, 2.09302), (120, 1.97993)],
)
def test_quantiles_are_those_of_the_tables(degrees: int, quantile: float) -> None:
    assert t_quantile(0.95, degrees) == pytest.approx(quantile, rel=3e-6)
    assert t_probability(quantile, degrees) == pytest.approx(0.95, abs=1e-6)


def test_a_ratio_and_its_interval_by_hand() -> None:
    # d = log 2 in four of five replicates and log 2 + 0.5 in one: mean log 2 + 0.1, sd 0.2236.
    other = [200.0, 220.0, 190.0, 206.0, 198.0 * np.exp(0.5)]
    compared = compare_values(FIVE, other)
    assert compared.ratio == pytest.approx(2 * np.exp(0.1))
    assert compared.low == pytest.approx(2 * np.exp(0.1 - 2.77645 * 0.1), rel=1e-5)
    assert compared.high == pytest.approx(2 * np.exp(0.1 + 2.77645 * 0.1), rel=1e-5)
    assert (compared.verdict, compared.replicates) == ("more", 5)


@given(
    st.lists(
        st.tuples(st.floats(0.5, 1e6), st.floats(0.5, 1e6)), min_size=2, max_size=12, unique=True
    )
)
def test_exchanging_the_policies_inverts_the_ratio_and_mirrors_the_verdict(pairs) -> None:
    one, other = zip(*pairs, strict=True)
    forth, back = compare_values(one, other), compare_values(other, one)
    assert back.ratio == pytest.approx(1 / forth.ratio)
    assert back.low == pytest.approx(1 / forth.high, nan_ok=True)
    mirrored = {"less": "more", "more": "less"}
    assert back.verdict == mirrored.get(forth.verdict, forth.verdict)


@pytest.mark.parametrize(
    ("other", "verdict"),
    [
        (FIVE, "identical"),
        ([x * 1.5 for x in FIVE], "too few replicates"),  # five copies of one replicate
        ([150.0, 166.0, 141.0, 155.0, 149.0], "more"),
        ([100.1, 109.9, 95.1, 103.0, 98.9], "no difference"),
        ([120.0, 100.0, 99.0, 95.0, 108.0], "undecided"),
    ],
)
def test_verdicts(other: list[float], verdict: str) -> None:
    assert compare_values(FIVE, other).verdict == verdict


def test_fewer_than_five_independent_replicates_decide_nothing() -> None:
    other = [x * factor for x, factor in zip(FIVE, (1.5, 1.6, 1.7, 1.5, 1.6), strict=True)]
    assert compare_values(FIVE[:4], other[:4]).verdict == "too few replicates"
    clustered = compare_values(FIVE, other, clusters=[0, 0, 1, 1, 2])
    assert (clustered.verdict, clustered.replicates) == ("too few replicates", 3)


def test_what_is_undecided_says_how_many_replicates_would_decide() -> None:
    compared = compare_values(FIVE, [120.0, 100.0, 99.0, 95.0, 108.0])
    assert compared.enough is not None
    rng = np.random.default_rng(5)
    steps = rng.normal(np.log(compared.ratio), 0.1, compared.enough * 4)
    assert compare_values(np.ones(len(steps)), np.exp(steps)).verdict != "undecided"


def test_a_zero_leaves_a_difference_in_units() -> None:
    compared = compare_values([0.0] * 5, [3.0, 4.0, 5.0, 4.0, 3.5])
    assert np.isnan(compared.ratio)
    assert compared.difference == pytest.approx(3.9)
    assert compared.low < 3.9 < compared.high
    assert compared.verdict == "more"


@pytest.mark.parametrize(
    ("baseline", "other", "words"),
    [([1.0], [1.0, 2.0], "as many"), ([], [], "at least 1"), ([1.0], [np.inf], "not finite")],
)
def test_senseless_values_are_refused(baseline, other, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        artist.compare_values(baseline, other)


def test_holm_by_hand() -> None:
    def judged(p_value: float) -> ComparedValues:
        return ComparedValues(1.1, 1.0, 1.0, 1.2, "more", 9, p_value, None)

    # 0.010 <= 0.05 / 3, but 0.030 > 0.05 / 2: the third is not looked at any more.
    verdicts = [one.verdict for one in holm([judged(0.030), judged(0.010), judged(0.040)])]
    assert verdicts == ["undecided", "more", "undecided"]


# -- a policy against itself -------------------------------------------------------------

NULLS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "normal": lambda rng, n: rng.normal(100.0, 10.0, n),
    "lognormal": lambda rng, n: np.exp(rng.normal(0.0, 0.8, n)),
    "heavy tails": lambda rng, n: 1 + rng.pareto(1.5, n),
}


@pytest.mark.parametrize("replicates", [5, 8, 20])
@pytest.mark.parametrize("null", NULLS)
def test_false_verdicts_on_five_metrics_are_at_most_six_percent(null: str, replicates: int) -> None:
    rng = np.random.default_rng(2026)
    draw = NULLS[null]
    assert _familywise(
        lambda: compare_values(draw(rng, replicates), draw(rng, replicates))
    ) <= 0.06  # fmt: skip


@pytest.mark.parametrize("seeds", [5, 8, 20])
def test_an_effect_of_seeds_does_not_count_as_a_difference(seeds: int) -> None:
    rng = np.random.default_rng(7)
    clusters = np.repeat(np.arange(seeds), 3).tolist()

    def one() -> ComparedValues:
        trace = np.repeat(rng.normal(0.0, 0.5, seeds), 3)
        luck = np.repeat(rng.normal(0.0, 0.3, seeds), 3)  # a policy's own, the same in a seed
        noise = rng.normal(0.0, 0.1, (2, 3 * seeds))
        return compare_values(np.exp(trace + noise[0]), np.exp(trace + luck + noise[1]), clusters)

    assert _familywise(one) <= 0.06


def _familywise(one: Callable[[], ComparedValues], families: int = 2000) -> float:
    """Share of families of five metrics with a false `less` or `more`."""
    false = 0
    for _ in range(families):
        verdicts = {compared.verdict for compared in holm([one() for _ in range(5)])}
        false += bool(verdicts & {"less", "more"})
    return false / families


def test_sixty_real_runs_of_a_policy_do_not_differ_from_themselves() -> None:
    base = Scenario(racks=1, jobs=60, policy="las")
    runs = [
        simulate(base.model_copy(update={"seed": seed})).summary["jct_mean_s"] for seed in range(60)
    ]
    verdicts = [
        compare_values(runs[start : start + 5], runs[start + 30 : start + 35]).verdict
        for start in range(0, 30, 5)
    ]
    assert sum(verdict in ("less", "more") for verdict in verdicts) <= 1


def test_sums_that_differ_by_rounding_are_identical() -> None:
    baseline = [0.1 + 0.2, 1.0, 2.0, 3.0, 4.0]
    compared = compare_values(baseline, [0.3, 1.0, 2.0, 3.0, 4.0])
    assert compared.verdict == "identical"
    assert (compared.ratio, compared.difference, compared.low, compared.high) == (1, 0, 1, 1)
