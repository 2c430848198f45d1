"""Do sentences claim what the verdicts claim, and no more?"""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from artist.report.verdict_sentences import Side, best_sentence, metric_name, sentences, side
from artist.results.statistics.best_policy import Best, Measured, bests
from artist.results.statistics.compare_values import ComparedValues, compare_values, sure_but_within
from artist.results.terms.chief_metrics import (
    COMPARED,
    HEADLINES,
    IN_WORDS,
    NAMES,
    OF_A_REPORT,
    OF_A_RESULT,
)
from artist.results.terms.glossary import METRICS


def compared(verdict: str, ratio: float = 0.88, low: float = 0.84, high: float = 0.92):
    return ComparedValues(ratio, -12.0, low, high, verdict, 5, 0.01, None)


def texts(metric: str, **others: ComparedValues) -> list[tuple[str, str]]:
    return [(str(one.side), one.text) for one in sentences(metric, "fifo", others)]


def test_less_of_a_time_is_better() -> None:
    assert texts("jct_mean_s", dally=compared("less")) == [
        (
            "better",
            "dally finishes jobs 12 % sooner than fifo on average "
            "(JCT mean; 8 to 16 %, 5 replicates)",
        )
    ]


def test_more_of_a_time_is_worse() -> None:
    assert texts("makespan_s", las=compared("more", 1.5, 1.25, 1.8)) == [
        ("worse", "las finishes all jobs 50 % later than fifo (makespan; 25 to 80 %, 5 replicates)")
    ]


@pytest.mark.parametrize(
    ("metric", "name"),
    [
        ("jct_p95_s", "JCT P95"),
        ("gpu_computing_share", "GPU computing share"),
        ("comm_time_share", "communication time share"),
        ("iteration_time_p50_s", "iteration time P50"),
    ],
)
def test_a_metric_has_a_name_that_can_be_read(metric: str, name: str) -> None:
    assert metric_name(metric) == name


def test_a_gap_too_small_for_a_percentage_is_put_in_words() -> None:
    values = {"a": [100.0] * 5, "b": [100.00001] * 5}
    (best,) = bests([Measured("comm_time_mean_s", values, [(seed, 0) for seed in range(5)])])
    assert "a has the lowest, 100 s, next to nothing below the next, b; " in best_sentence(
        best, "100 s"
    )


def test_sure_and_tiny_is_said_at_once() -> None:
    tiny = compared("less", 0.995, 0.994, 0.996)
    (told,) = sentences("jct_mean_s", "fifo", {"las": tiny}, 0.05)
    assert told.text == (
        "las finishes jobs 0.5 % sooner than fifo on average, but by less than 5 % "
        "(JCT mean; 0.4 to 0.6 %, 5 replicates)"
    )
    (told,) = sentences("jct_mean_s", "fifo", {"las": tiny}, 0.004)
    assert "but" not in told.text
    # An interval that reaches over the share does not say that the difference is within it.
    (told,) = sentences("jct_mean_s", "fifo", {"las": compared("less", 0.97, 0.94, 0.999)}, 0.05)
    assert "but" not in told.text


def test_only_a_sure_difference_is_within_and_said_so() -> None:
    tiny = compared("less", 0.995, 0.994, 0.996)
    assert sure_but_within(tiny, 0.05)
    assert not sure_but_within(replace(tiny, verdict="no difference"), 0.05)


def test_the_best_may_be_best_by_next_to_nothing() -> None:
    near, far = compared("more", 1.005, 1.004, 1.006), compared("more", 1.5, 1.25, 1.8)
    best = Best("jct_mean_s", ("fifo",), 10.0, {"las": near}, "seeds")
    assert best_sentence(best, "10 s", 0.05).endswith(
        "surely lower than all others, but by less than 5 %."
    )
    best = replace(best, others={"las": near, "srtf": far})
    assert best_sentence(best, "10 s", 0.05).endswith(
        "surely lower than all others, but by less than 5 % than las."
    )


@pytest.mark.parametrize(
    ("metric", "less", "more"),
    [
        ("queue_delay_mean_s", "keeps jobs waiting 12 % shorter", "keeps jobs waiting 50 % longer"),
        ("comm_time_mean_s", "spends 12 % less time", "spends 50 % more time"),
        ("preemptions", "has 12 % fewer preemptions", "has 50 % more preemptions"),
    ],
)
def test_each_metric_has_its_words(metric: str, less: str, more: str) -> None:
    one, other = texts(metric, a=compared("less"), b=compared("more", 1.5, 1.25, 1.8))
    assert less in one[1]
    assert more in other[1]


@pytest.mark.parametrize(
    ("verdict", "word"),
    [
        ("undecided", "las and srtf cannot be told apart from fifo (JCT mean; 5 replicates)"),
        ("identical", "las and srtf are identical to fifo"),
        ("no difference", "las and srtf differ from fifo by less than 2 %"),
        ("too few replicates", "there is no verdict on las and srtf against fifo: it needs 5"),
    ],
)
def test_no_other_verdict_claims_a_direction(verdict: str, word: str) -> None:
    ((told, text),) = texts("jct_mean_s", las=compared(verdict), srtf=compared(verdict))
    assert text.startswith(word)
    assert told in ("equal", "open")
    assert not any(claim in text for claim in ("sooner", "later", "12 %"))


def test_policies_come_from_the_best_to_the_worst_and_the_unsure_last() -> None:
    told = texts(
        "jct_mean_s",
        open=compared("undecided"),
        worst=compared("more", 3.0, 2.0, 4.0),
        best=compared("less"),
        worse=compared("more", 2.0, 1.5, 2.5),
    )
    assert [text.split()[0] for _, text in told] == ["best", "worse", "worst", "open"]


def test_where_there_is_no_ratio_the_unit_is_stated() -> None:
    one = ComparedValues(math.nan, -12.0, -15.0, -9.0, "less", 5, 0.01, None)
    assert texts("comm_time_mean_s", dally=one)[0][1] == (
        "dally spends 12 s less time on communication than fifo "
        "(communication; 9 to 15 s, 5 replicates)"
    )


def test_more_computing_is_better_and_placements_are_neither() -> None:
    assert side("gpu_computing_share", "more") is Side.BETTER
    assert side("jain_index", "less") is Side.WORSE
    assert side("training_time_ratio_mean", "more") is Side.BETTER
    assert side("tenants_jain_index", "more") is Side.BETTER
    assert side("placements_rack", "less") is Side.LESS
    assert side("comm_time_mean_s", "less") is Side.BETTER


def test_every_metric_has_a_sentence_without_underscores() -> None:
    for term in METRICS:
        assert "_" not in metric_name(term.name)
        for verdict in ("less", "more"):
            ((_, text),) = texts(term.name, dally=compared(verdict))
            assert "{" not in text


def test_a_real_comparison_speaks_as_its_verdict() -> None:
    base = [100.0, 110.0, 90.0, 105.0, 95.0]
    sure = compare_values(base, [value * (0.8 + 0.001 * i) for i, value in enumerate(base)])
    noise = compare_values(base, [95.0, 120.0, 80.0, 110.0, 93.0])
    told = {text.split()[0]: kind for kind, text in texts("makespan_s", sure=sure, noise=noise)}
    assert told == {"sure": "better", "noise": "open"}


def test_less_is_better_of_every_metric_that_a_best_policy_is_named_for() -> None:
    assert {side(metric, "less") for metric in HEADLINES} == {Side.BETTER}
    assert all(HEADLINES[metric] == NAMES[metric] for metric in HEADLINES)


def test_every_chief_metric_is_one_of_the_glossary() -> None:
    known = {term.name for term in METRICS}
    for chosen in (NAMES, HEADLINES, IN_WORDS, COMPARED, OF_A_RESULT, OF_A_REPORT):
        assert set(chosen) <= known
