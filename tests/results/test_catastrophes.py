"""Are rare extreme runs named where they occur, and is it said how many may have been missed?"""

from __future__ import annotations

import numpy as np
import pytest

from artist.results.statistics.catastrophes import far_off, unseen
from artist.results.statistics.compare_values import compare_values
from artist.rng import stream

SAMPLES = 2000


def draws(count: int, share: float, sd: float = 0.01) -> np.ndarray:
    """Samples of a policy 5 % faster than one with values of 1, tripled in some of its runs."""
    rng = stream(7, f"test.catastrophes.{count}.{share}.{sd}")
    values = 0.95 * np.exp(sd * rng.standard_normal((SAMPLES, count)))
    values[rng.random((SAMPLES, count)) < share] *= 3
    return values


@pytest.mark.parametrize(("count", "false"), [(5, 0.45), (8, 0.27), (20, 0.04)])
def test_few_replicates_call_a_policy_faster_that_is_slower_on_average(count, false) -> None:
    """In 15 % of its runs it takes three times as long, so on average it takes 23 % longer.

    A sample without such a run says `less`: .85^n of them, the figures expected here.
    """
    base = np.exp(0.01 * stream(8, "test.catastrophes.base").standard_normal((SAMPLES, count)))
    verdicts = [
        compare_values(one.tolist(), other.tolist()).verdict
        for one, other in zip(base[:500], draws(count, 0.15)[:500], strict=True)
    ]
    assert verdicts.count("less") / 500 == pytest.approx(false, abs=0.05)


@pytest.mark.parametrize("count", [5, 8, 20])
def test_catastrophes_that_occur_are_named(count) -> None:
    """If half of the replicates are catastrophes, the others are the exception."""
    samples = draws(count, 0.15)
    tripled = (samples > 2).sum(axis=1)
    found = [far_off(sample.tolist()) is not None for sample in samples]
    few = (tripled > 0) & (tripled <= count // 3)
    assert np.mean(np.array(found)[few]) > 0.9
    assert not np.array(found)[tripled == 0].any()


@pytest.mark.parametrize(("sd", "most"), [(0.1, 0.001), (0.3, 0.04)])
@pytest.mark.parametrize("count", [5, 8, 20])
def test_ordinary_replicates_are_seldom_called_far_off(count, sd, most) -> None:
    found = [far_off(sample.tolist()) is not None for sample in draws(count, 0.0, sd)]
    assert np.mean(found) <= most


def test_which_replicate_and_by_how_much() -> None:
    assert far_off([1.0, 1.01, 0.99, 3.0, 1.02]) == (3, pytest.approx(3 / 1.01))
    assert far_off([1.0, 1.0, 1.0, 1.5]) is None  # the limit itself is not far
    assert far_off([1.0, 1.0, 1.0, 1.51]) is not None
    assert far_off([0.3, 1.0, 1.0, 1.0]) is None  # a lucky run
    assert far_off([1.0, 9.0]) is None and far_off([0.0, 1.0, 1.0, 9.0]) is None


def test_how_often_something_may_happen_that_no_replicate_shows() -> None:
    assert [round(unseen(n), 2) for n in (5, 8, 20, 59)] == [0.45, 0.31, 0.14, 0.05]
    assert (1 - unseen(12)) ** 12 == pytest.approx(0.05)
