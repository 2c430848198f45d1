"""Does adding replicates until intervals are narrow end where it should, and keep the level?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from artist.config import Scenario
from artist.errors import ConfigError
from artist.experiments.comparison.compare import compare
from artist.experiments.comparison.until import (
    FIRST_LOOK,
    enough_for,
    half_width,
    level_of,
    looks,
    may_decide,
    next_count,
)
from artist.results.statistics.chance_to_decide import Open
from artist.results.statistics.compare_values import MORE, UNDECIDED, ComparedValues, compare_values
from artist.results.statistics.holm import holm

DRAWN = Scenario(racks=1, jobs=40, backend="none")


def test_half_widths_by_hand() -> None:
    # d = log 2 in four replicates and log 2 + 0.5 in one: reach 2.77645 x 0.2236 / sqrt 5.
    base, other = [1.0] * 5, [2.0, 2.0, 2.0, 2.0, 2.0 * np.exp(0.5)]
    width = half_width(base, other, compare_values(base, other))
    assert width == pytest.approx(np.exp(0.277645) - 1, rel=1e-5)
    # Differences 3, 4, 5, 4, 4: sd 0.7071, reach 2.77645 x 0.31623; the larger mean is 4.
    base, other = [0.0] * 5, [3.0, 4.0, 5.0, 4.0, 4.0]
    width = half_width(base, other, compare_values(base, other))
    assert width == pytest.approx(2.77645 * 0.316228 / 4, rel=1e-5)


def test_copies_of_one_replicate_and_identical_values_are_narrow() -> None:
    for other in ([2.0] * 5, [1.0] * 5):
        assert half_width([1.0] * 5, other, compare_values([1.0] * 5, other)) == 0


@pytest.mark.parametrize(
    ("widest", "wanted"),
    [
        (0.02, 8),  # as narrow as wanted
        (0.021, 10),  # 9 would do; looks are a quarter apart
        (0.025, 12),  # 2.2010 x 0.02953 / sqrt 12 = 0.0188 < log 1.02 = 0.0198; with 11, 0.0198+
        (0.2, 16),  # at most twofold
    ],
)
def test_the_next_look(widest: float, wanted: int) -> None:
    assert next_count(8, widest, 0.02, 100) == wanted


def test_the_budget_ends_the_replicates() -> None:
    assert next_count(80, 0.2, 0.02, 100) == 100
    assert next_count(100, 0.2, 0.02, 100) == 100


def test_the_predicted_number_of_replicates_gives_the_half_width() -> None:
    # Standard deviation 10 %: 100 replicates give 2 % (`until.BUDGET`).
    width = np.exp(1.984217 * 0.1 / np.sqrt(100)) - 1
    assert width == pytest.approx(0.02, rel=0.01)
    assert enough_for(100, width, width) == 100
    assert enough_for(100, width, width / 2) == pytest.approx(400, rel=0.03)


def test_too_many_replicates_are_not_predicted() -> None:
    assert enough_for(8, 5.0, 0.001) is None
    assert next_count(8, 5.0, 0.001, 100) == 16


def test_half_widths_may_be_infinite() -> None:
    base, other = [1.0, 1.0], [1.0, 1e50]
    assert half_width(base, other, compare_values(base, other)) == np.inf
    base, other = [0.0, 0.0, 0.0, 0.0, 0.0], [-2.0, 2.0, -1.0, 1.0, 0.0]
    assert half_width(base, other, compare_values(base, other)) == np.inf
    assert next_count(8, np.inf, 0.02, 100) == 16


def test_replicates_are_the_same_whatever_the_number_of_workers() -> None:
    one, two = (
        compare(
            DRAWN, ["fifo", "srtf"], seeds=1, permutations=1, until=0.05, budget=12, workers=workers
        )
        for workers in (1, 2)
    )
    assert one == two


def test_what_varies_grows() -> None:
    seeds = compare(DRAWN, ["fifo", "srtf"], seeds=2, permutations=2, until=0.0001, budget=10)
    assert seeds.replicates[-1] == (9, 1)
    assert (len(seeds.replicates), seeds.independent) == (20, 10)
    assert seeds.widest.half_width > 0.0001
    assert seeds.missing is None  # more replicates than anybody would run
    enough = compare(DRAWN, ["fifo", "srtf"], seeds=2, permutations=1, until=0.9)
    assert (enough.independent, enough.missing) == (FIRST_LOOK, 0)


def test_values_do_not_depend_on_how_replicates_were_added() -> None:
    grown = compare(DRAWN, ["fifo", "srtf"], seeds=2, permutations=1, until=0.0001, budget=12)
    at_once = compare(DRAWN, ["fifo", "srtf"], seeds=12, permutations=1)
    assert grown.values == at_once.values
    assert grown.differences == at_once.differences


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"until": 0.0}, "expected a share between 0 and 1"),
        ({"until": "soon"}, "--until soon: expected a share between 0 and 1, such as 2%, or dec"),
        ({"until": 0.02, "budget": 7}, "at least 8"),
        ({"until": 0.02, "budget": 10, "permutations": 20}, "at least 20"),
        ({"equivalence": -0.1}, "equivalence"),
    ],
)
def test_senseless_limits_are_refused(options: dict[str, float], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        compare(DRAWN, ["fifo", "srtf"], **{"seeds": 1, "permutations": 1, **options})


# -- until it is decided -------------------------------------------------------------------


def test_looks_double_up_to_the_budget_and_share_the_error() -> None:
    assert looks(8, 100) == [8, 16, 32, 64, 100]
    assert looks(8, 8) == [8]
    assert level_of([8]) == 0.95
    assert level_of(looks(8, 100)) == 0.99


def test_replicates_end_when_nothing_is_undecided() -> None:
    size = {"seeds": 2, "permutations": 1, "until": "decided", "budget": 16}
    made = compare(DRAWN, ["fifo", "srtf"], **size, metrics=["jct_mean_s"])
    one = made.differences["srtf"]["jct_mean_s"]
    assert (made.independent, one.verdict) == (FIRST_LOOK, "less")
    assert made.level == one.level == 0.975


def test_a_look_that_can_decide_nothing_is_left_out() -> None:
    far, near = (Open(mean, 0.1, 8, 0.0, 0.95, 0.9) for mean in (0.01, 0.08))
    open_ = ComparedValues(1.0, 0.0, 0.9, 1.1, UNDECIDED, 8, 0.9, far)
    assert not may_decide([open_], 100)
    assert may_decide([open_, replace(open_, open=near)], 100)
    assert not may_decide([replace(open_, verdict=MORE, open=near)], 100)


@pytest.mark.slow
def test_looking_often_gives_no_more_false_verdicts() -> None:
    """Five metrics of a policy against itself, with looks at 8, 16, 32 and 64 replicates."""
    rng, false, families, counts = np.random.default_rng(11), 0, 1000, looks(8, 64)
    for _ in range(families):
        logs = rng.standard_normal((5, 64))
        for count in counts:
            judged = holm(
                [
                    compare_values(np.ones(count), np.exp(one[:count]), None, level_of(counts))
                    for one in logs
                ],
                level_of(counts),
            )
            if any(one.verdict in ("less", "more") for one in judged):
                false += 1
                break
            if not may_decide(judged, 64):
                break
    assert false <= 0.06 * families


# -- a policy against itself, with replicates added ---------------------------------------

NULLS: dict[str, Callable[[np.random.Generator, tuple[int, int]], np.ndarray]] = {
    "normal": lambda rng, size: rng.standard_normal(size),
    "heavy tails": lambda rng, size: rng.standard_t(3, size),
}
# What is wide decides when to stop, so one wide metric beside narrow ones is the worst case.
SHAPES = {"one wide": [1.0, 0.05, 0.05, 0.05, 0.05], "all alike": [1.0] * 5}


# Deviations at which the rule stops early, in the middle and late.
@pytest.mark.parametrize(
    ("null", "shape", "deviation"),
    [
        ("normal", "one wide", 0.03),
        ("normal", "one wide", 0.05),
        ("normal", "all alike", 0.03),
        ("heavy tails", "one wide", 0.03),
    ],
)
@pytest.mark.slow
def test_false_verdicts_stay_below_six_percent(null: str, shape: str, deviation: float) -> None:
    rng = np.random.default_rng(13)
    scale = deviation * np.array(SHAPES[shape])[:, np.newaxis]
    false = 0
    for _ in range(2000):
        steps = NULLS[null](rng, (5, 100)) * scale
        compared = _until(steps)
        false += bool({one.verdict for one in holm(compared)} & {"less", "more"})
    assert false / 2000 <= 0.06


def test_the_rule_that_stops_at_a_verdict_would_break_the_level() -> None:
    # Why the width decides: the same looks, ended by the first `less` or `more`.
    rng = np.random.default_rng(13)
    false = 0
    for _ in range(300):
        steps = rng.standard_normal((5, 100)) * 0.2
        count, stop = FIRST_LOOK, False
        while not stop:
            verdicts = {one.verdict for one in holm(_compared(steps, count))}
            stop = bool(verdicts & {"less", "more"}) or count >= 100
            false += bool(verdicts & {"less", "more"})
            count = next_count(count, 1.0, 0.02, 100)
    assert false / 300 > 0.08


def test_the_ratio_has_no_bias() -> None:
    rng = np.random.default_rng(3)
    steps = rng.standard_normal((2000, 1, 60)) * 0.04
    ratios = [np.log(_until(one)[0].ratio) for one in steps]
    assert abs(np.mean(ratios)) < 3 * np.std(ratios) / np.sqrt(2000)


def _until(steps: np.ndarray) -> list[ComparedValues]:
    """Comparisons of metrics (rows) with as many replicates (columns) as the rule takes."""
    count = 0
    wanted = FIRST_LOOK
    while wanted != count:
        count = wanted
        compared = _compared(steps, count)
        values = np.exp(steps[:, :count])
        widths = (
            half_width([1.0] * count, row, one) for row, one in zip(values, compared, strict=True)
        )
        wanted = next_count(count, max(widths), 0.02, steps.shape[1])
    return compared


def _compared(steps: np.ndarray, count: int) -> list[ComparedValues]:
    return [compare_values(np.ones(count), np.exp(row)) for row in steps[:, :count]]
