"""Is the best policy named, and is no more claimed of it than all pairs together allow?"""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from artist.report.verdict_sentences import best_sentence, family_words, what_may_decide
from artist.results.statistics.best_policy import Measured, bests
from artist.results.statistics.chance_to_decide import Open
from artist.results.statistics.compare_values import ComparedValues, compare_values
from artist.results.statistics.holm import (
    Pair,
    compare_together,
    holm,
    judged_together,
    undecided_together,
)

FAST = [10.0, 11.0, 12.0, 13.0, 14.0, 15.0]
SLOW = [20.0, 22.4, 23.5, 26.3, 27.7, 30.6]
NEAR = [11.0, 10.0, 13.5, 12.0, 15.5, 14.0]
NEARER = [10.5, 10.6, 12.5, 12.4, 14.6, 14.5]


def sentence(**values: list[float]) -> str:
    count = len(next(iter(values.values())))
    (best,) = bests([Measured("jct_mean_s", values, [(seed, 0) for seed in range(count)])])
    return best_sentence(best, "12.5 s")


def test_the_best_is_named_whatever_the_order_of_policies() -> None:
    told = "Average JCT: fast has the lowest, 12.5 s, 50 % below the next, slow; surely lower than "
    assert sentence(slow=SLOW, fast=FAST).startswith(told)
    assert sentence(fast=FAST, slow=SLOW).startswith(told)


def test_the_next_is_named_and_ties_share_the_place() -> None:
    assert "% below the next, near; " in sentence(slow=SLOW, near=NEAR, fast=FAST)
    told = sentence(slow=SLOW, other=SLOW, fast=FAST)
    assert "50 % below the next, slow, other; " in told


def test_sure_and_undecided_pairs_are_distinguished() -> None:
    told = sentence(near=NEAR, slow=SLOW, fast=FAST)
    assert "; surely lower than slow; undecided against near (about " in told


def test_of_several_undecided_pairs_the_nearest_verdict_is_named() -> None:
    told = sentence(near=NEAR, nearer=NEARER, fast=FAST)
    assert "undecided against near and nearer (about " in told
    verdicts = holm([
        compare_values(one, other)
        for one, other in ((NEAR, NEARER), (NEAR, FAST), (NEARER, FAST))
    ])  # fmt: skip
    near, nearer = (one.enough or math.inf for one in verdicts[1:])
    assert f" would probably settle it against {'near' if near < nearer else 'nearer'})" in told


def test_all_metrics_are_one_family() -> None:
    """A difference that is sure by itself is not sure among many pairs."""
    shares = (1.09, 1.00, 1.08, 1.02, 1.10, 1.01)
    pair = {"b": [a * share for a, share in zip(FAST, shares, strict=True)], "a": FAST}
    replicates = [(seed, 0) for seed in range(6)]
    one = Measured("jct_mean_s", pair, replicates)
    noise = Measured("makespan_s", {"b": NEAR, "a": FAST}, replicates)
    assert bests([one])[0].surely
    assert not bests([one, *[noise] * 30])[0].surely


def open_(ratio: float, low: float, high: float, more: int = 1) -> ComparedValues:
    lacks = cast(Open, SimpleNamespace(enough=lambda _: 5 + more))
    return ComparedValues(ratio, 1.0, low, high, "undecided", 5, 0.04, lacks)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (1, "about 1 more permutation would probably settle it"),
        (2, "about 2 more permutations would probably settle it"),
        (1200, "about 1,200 more permutations would probably settle it"),
    ],
)
def test_the_number_of_further_replicates_is_called_an_estimate(more: int, words: str) -> None:
    assert what_may_decide(open_(1.1, 1.01, 1.2, more), "permutations") == words


def test_undecided_only_jointly_is_distinguished_from_undecided_alone() -> None:
    assert undecided_together(open_(1.1, 1.01, 1.2))
    assert not undecided_together(open_(1.1, 0.99, 1.2))
    assert undecided_together(open_(math.nan, 0.5, 2.0))
    assert not undecided_together(open_(math.nan, -0.5, 2.0))
    sure = ComparedValues(1.1, 1.0, 1.01, 1.2, "more", 5, 0.001, None)
    assert not undecided_together(sure)


def test_pairs_that_no_test_judges_are_not_counted() -> None:
    same, few = compare_values(FAST, FAST), compare_values(FAST[:3], SLOW[:3])
    assert judged_together([same, few, compare_values(FAST, SLOW), open_(1.1, 0.9, 1.2)]) == 2


def test_pairs_judged_at_once_are_one_family() -> None:
    one = Pair(FAST, [1.09 * value for value in NEAR], [(seed, 0) for seed in range(6)])
    alone = compare_together({"a": one})
    single_one = compare_values(one.baseline, one.other)
    own = {"joint_low": single_one.low, "joint_high": single_one.high}
    assert alone["a"] == replace(single_one, **own)
    many = {str(index): one for index in range(9)}
    single = [compare_values(one.baseline, one.other)] * 9
    assert list(compare_together(many).values()) == holm(single)


def test_permutations_of_one_seed_are_one_replicate_of_a_family() -> None:
    replicates = [(seed, order) for seed in range(3) for order in range(2)]
    assert compare_together({"a": Pair(FAST, SLOW, replicates)})["a"].replicates == 3


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "No comparison has enough replicates to be judged: all pairs."),
        (1, "1 comparison is judged: all pairs."),
        (1200, "1,200 comparisons are judged together (Holm): all pairs."),
    ],
)
def test_a_family_is_named_with_its_size(count: int, words: str) -> None:
    assert family_words(count, "all pairs") == words


def test_the_best_knows_how_many_pairs_are_judged_with_it() -> None:
    replicates = [(seed, 0) for seed in range(6)]
    values = {"fast": FAST, "slow": SLOW, "near": NEAR}
    two = [Measured(metric, values, replicates) for metric in ("jct_mean_s", "makespan_s")]
    assert [best.family for best in bests(two)] == [6, 6]
