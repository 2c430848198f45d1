"""Does a verdict keep the promise of its level? Against nulls, theory, and swapped arguments."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import artist
from artist.config import Scenario
from artist.errors import ConfigError
from artist.report.verdict_sentences import what_may_decide
from artist.results.statistics import students_t
from artist.results.statistics.compare_values import ComparedValues, Verdict, compare_values
from artist.results.statistics.holm import adjusted_p_values, holm
from artist.results.statistics.students_t import t_probability, t_quantile
from artist.results.terms.chief_metrics import COMPARED
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
        # Constant ratios over different replicates, whatever the rounding of the factor.
        ([x * 1.5 for x in FIVE], "more"),
        ([x * 1.1 for x in FIVE], "more"),
        ([x / 3 for x in FIVE], "less"),
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


@pytest.mark.parametrize("noise", [0.0, 1e-14])
@pytest.mark.parametrize(("base", "other"), [(100.0, 150.0), (0.0, 3.0), (100.0, 100.1)])
def test_copies_of_one_replicate_decide_nothing(base: float, other: float, noise: float) -> None:
    # Sums in another order: equal but for rounding.
    rounding = 1 + noise * np.arange(6)
    compared = compare_values(base * rounding, other * rounding[::-1])
    assert (compared.verdict, compared.replicates) == ("too few replicates", 1)
    assert np.isnan(compared.low)


def test_a_constant_difference_in_units_has_no_width() -> None:
    compared = compare_values([0.0, 0.1, 0.2, 0.3, 0.4], [3.0, 3.1, 3.2, 3.3, 3.4])
    assert compared.verdict == "more"
    assert compared.low == compared.high == pytest.approx(3)


@pytest.mark.parametrize("other", [[1.0, 2.0], [1.0, 1e50], [1e-300, 1e300]])
def test_intervals_may_be_infinite(other: list[float]) -> None:
    compared = compare_values([1.0, 1.0], other, level=0.9999)
    assert (compared.low, compared.high) == (0.0, np.inf)
    assert holm([compared], level=0.9999) == [compared]
    wide = compare_values([1.0] * 6, [*other * 3], level=1 - 1e-9)
    assert holm([wide], level=1 - 1e-9)[0].verdict == "undecided"


@pytest.mark.parametrize("offset", [0.03, 0.3])
def test_soonest_is_the_least_count_that_decides_if_nothing_changes(offset: float) -> None:
    def of_size(count: int) -> ComparedValues:
        """Steps of one mean and one sample deviation, whatever their number."""
        steps = np.random.default_rng(1).standard_normal(count)
        steps = (steps - steps.mean()) / steps.std(ddof=1)
        return compare_values(np.ones(count), np.exp(offset + 0.6 * steps))

    soonest = of_size(6).soonest
    assert soonest is not None
    assert of_size(soonest).verdict != "undecided"
    assert of_size(math.floor(0.9 * soonest)).verdict == "undecided"


def test_more_than_ten_thousand_replicates_are_not_predicted() -> None:
    compared = compare_values([1.0] * 6, np.exp([5.0, -5.0, 4.0, -4.0, 3.0, -3.001]))
    assert (compared.verdict, compared.enough) == ("undecided", None)
    words = "not even 10,000 seeds would settle it"
    assert what_may_decide(compared, "seeds") == words


def test_quantiles_of_many_degrees_are_those_of_the_distribution() -> None:
    for degrees in (200, 201, 500):
        for level in (0.5, 0.9, 0.95, 0.999, 1 - 1e-7):
            quantile = t_quantile(level, degrees)
            assert t_probability(quantile, degrees) == pytest.approx(level, abs=1e-9)
            # The bisection of one degree less is larger.
            assert quantile < t_quantile(level, 199)


def test_quantiles_are_expanded_for_few_degrees_too() -> None:
    """Published tables: 99 %, two-sided."""
    assert students_t.expanded_quantile(0.99, 4) == pytest.approx(4.604, rel=0.01)
    assert students_t.expanded_quantile(0.99, 10) == pytest.approx(3.169, rel=1e-3)
    assert students_t.expanded_quantile(0.99, 40) == pytest.approx(2.704, rel=1e-3)


def test_quantiles_of_many_degrees_need_no_sum_of_many_terms(monkeypatch) -> None:
    # An undecided comparison took seconds: each term of each probability of each count.
    monkeypatch.setattr(students_t, "t_probability", None)
    assert t_quantile.__wrapped__(0.95, 1000) == pytest.approx(1.962339, rel=1e-6)  # a table's


def test_a_zero_leaves_a_difference_in_units() -> None:
    compared = compare_values([0.0] * 5, [3.0, 4.0, 5.0, 4.0, 3.5])
    assert np.isnan(compared.ratio)
    assert compared.difference == pytest.approx(3.9)
    assert compared.low < 3.9 < compared.high
    assert compared.verdict == "more"


@pytest.mark.parametrize(
    ("baseline", "other", "words"),
    [
        ([1.0], [1.0, 2.0], "the same number"),
        ([], [], "at least 1"),
        ([1.0], [np.inf], "not finite"),
        ([1.0], [1e301], "1e.301, expected at most"),
        (["a"], ["b"], r"baseline \['a'\], expected a sequence"),
        ([1.0], ["1"], r"other \['1'\], expected a sequence"),
        ([1.0], (x for x in [1.0]), "other <generator"),
        ([[1.0, 2.0]], [[1.0, 2.0]], r"baseline \[\[1.0, 2.0\]\]"),
        ("12", "34", "baseline '12'"),
    ],
)
def test_senseless_values_are_refused(baseline, other, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        artist.compare_values(baseline, other)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"level": 0.5}, "level 0.5, expected a number above 0.5"),
        ({"level": 1}, "level 1"),
        ({"level": "a"}, "level 'a'"),
        ({"equivalence": 2}, "equivalence 2, expected a share"),
        ({"clusters": [[], []]}, r"clusters \[\[\], \[\]\]"),
        ({"clusters": (x for x in "ab")}, "clusters <generator"),
    ],
)
def test_senseless_options_are_refused(options, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        artist.compare_values([1.0, 2.0], [3.0, 4.0], **options)


def test_pairs_that_no_test_judges_are_not_in_the_family() -> None:
    judged = ComparedValues(1.1, 1.0, 1.0, 1.2, "more", 9, 0.04, None)
    copies = compare_values([1.0] * 5, [2.0] * 5)
    assert [one.verdict for one in holm([judged, copies])] == ["more", "too few replicates"]


def test_holm_by_hand() -> None:
    def judged(p_value: float) -> ComparedValues:
        return ComparedValues(1.1, 1.0, 1.0, 1.2, "more", 9, p_value, None)

    # 0.010 <= 0.05 / 3, but 0.030 > 0.05 / 2: the third is not looked at any more.
    verdicts = [one.verdict for one in holm([judged(0.030), judged(0.010), judged(0.040)])]
    assert verdicts == ["undecided", "more", "undecided"]


def test_joint_intervals_agree_with_the_verdicts() -> None:
    """They leave out a ratio of 1 where the family's verdict is sure, and nowhere else."""
    rng = np.random.default_rng(4)
    kinds = set()
    for _ in range(300):
        single = [
            compare_values(np.exp(rng.normal(0, 0.2, 6)), np.exp(rng.normal(effect, 0.2, 6)))
            for effect in (0.0, 0.0, 0.2, 0.4, 1.5)
        ]
        for alone, one in zip(single, holm(single), strict=True):
            sure = one.verdict in ("less", "more")
            assert sure == (not one.joint_low <= 1 <= one.joint_high)
            assert one.joint_low <= alone.low and alone.high <= one.joint_high
            kinds.add((alone.verdict, one.verdict))
    assert ("more", "undecided") in kinds and ("more", "more") in kinds


def test_joint_intervals_of_what_is_open_cover_the_truth_together() -> None:
    rng, effects = np.random.default_rng(5), (0.0, 0.0, 0.1, 0.3, 1.0)
    missed = 0
    for _ in range(2000):
        together = holm([
            compare_values(np.ones(8), np.exp(rng.normal(effect, 0.4, 8))) for effect in effects
        ])  # fmt: skip
        missed += any(
            not one.joint_low <= math.exp(effect) <= one.joint_high
            for effect, one in zip(effects, together, strict=True)
            if one.verdict not in ("less", "more")
        )
    assert missed <= 0.05 * 2000


# -- a policy against itself -------------------------------------------------------------

NULLS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    # Named after what their logarithms are, since those are judged.
    "normal": lambda rng, n: np.exp(rng.normal(0.0, 0.8, n)),
    "exponential": lambda rng, n: 1 + rng.pareto(1.5, n),
    "heavy tails": lambda rng, n: np.exp(rng.standard_t(3, n)),
    # No logarithms: the differences are judged in units.
    "half of them zero": lambda rng, n: rng.exponential(10.0, n) * (rng.random(n) < 0.5),
}


@pytest.mark.parametrize(
    ("null", "replicates"),
    [
        pytest.param(null, count, marks=[pytest.mark.slow] * (count != 8))
        for null in NULLS
        for count in (5, 8, 20)
    ],
)
def test_false_verdicts_on_five_metrics_are_at_most_six_percent(null: str, replicates: int) -> None:
    rng = np.random.default_rng(2026)
    draw = NULLS[null]
    assert _familywise(
        lambda: compare_values(draw(rng, replicates), draw(rng, replicates))
    ) <= 0.06  # fmt: skip


@pytest.mark.slow
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


def test_skewed_differences_break_the_level_as_the_text_says() -> None:
    rng = np.random.default_rng(4)
    for count, text in ((5, 0.117), (8, 0.106), (20, 0.081)):
        steps = 0.3 * (rng.exponential(size=(20_000, count)) - 1)
        t = steps.mean(1) / steps.std(1, ddof=1) * math.sqrt(count)
        assert np.mean(np.abs(t) > t_quantile(0.95, count - 1)) == pytest.approx(text, abs=0.007)


@pytest.mark.slow
def test_sixty_real_runs_of_a_policy_do_not_differ_from_themselves() -> None:
    base = Scenario(racks=1, jobs=60, policy="las")
    runs = np.array(
        [
            [simulate(base.model_copy(update={"seed": seed})).summary[name] for name in COMPARED]
            for seed in range(60)
        ]
    )
    rng = np.random.default_rng(60)
    families = []
    for _ in range(150):  # splits into 30 pairs: 6 families of five pairs, so 900 in all
        drawn = runs[rng.permutation(60)].reshape(6, 2, 5, len(COMPARED))
        for one, other in drawn:
            compared = [compare_values(one[:, m], other[:, m]) for m in range(len(COMPARED))]
            families.append({judged.verdict for judged in holm(compared)} & {"less", "more"})
    assert sum(map(bool, families)) <= 0.06 * len(families)


def test_sums_that_differ_by_rounding_are_identical() -> None:
    baseline = [0.1 + 0.2, 1.0, 2.0, 3.0, 4.0]
    compared = compare_values(baseline, [0.3, 1.0, 2.0, 3.0, 4.0])
    assert compared.verdict == "identical"
    assert (compared.ratio, compared.difference, compared.low, compared.high) == (1, 0, 1, 1)


def test_adjusted_p_values_are_holms() -> None:
    """Three tests: .01 x 3, then .02 x 2, then .03, which may not fall below the one before."""
    made = [
        ComparedValues(1.1, 1.0, 1.0, 1.2, verdict, 5, p_value, None)
        for verdict, p_value in (
            (Verdict.MORE, 0.03),
            (Verdict.IDENTICAL, 1.0),
            (Verdict.LESS, 0.01),
            (Verdict.MORE, 0.02),
        )
    ]
    assert adjusted_p_values(made) == pytest.approx([0.04, 1.0, 0.03, 0.04])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_what_holm_lets_pass_has_an_adjusted_p_value_within_the_level(
    p_values: list[float],
) -> None:
    made = [ComparedValues(2.0, 1.0, 1.5, 2.5, Verdict.MORE, 9, p, None) for p in p_values]
    passing = [one.verdict == Verdict.MORE for one in holm(made)]
    assert passing == [p <= 1 - 0.95 for p in adjusted_p_values(made)]
