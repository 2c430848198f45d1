"""Does a comparison say which runs its time budget left out, and what is left of it?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from artist.cli.comparison_notes import what_a_budget_cut
from artist.cli.progress_bar import forecast
from artist.cli.progress_lines import RunsDone, RunTimeEstimator
from artist.config import Scenario
from artist.experiments.comparison.compare import compare
from artist.experiments.comparison.comparison_result import Comparison
from artist.experiments.executors import TimeBudget


@pytest.fixture(scope="module")
def whole() -> Comparison:
    scenario = Scenario(racks=1, trace="tiny-batch")
    return compare(scenario, ["fifo", "las"], permutations=2)


def over(text: str = "2min") -> TimeBudget:
    budget = TimeBudget(text)
    budget._ends -= budget.length_s
    return budget


def test_runs_that_a_budget_left_out_are_counted(whole: Comparison) -> None:
    cut = replace(whole, replicates_asked=8, runs_made=5)
    assert what_a_budget_cut(cut, over(), 30) == [
        "--budget 2min ended this after 5 of 16 runs (2 of 8 permutations)."
    ]
    (long,) = what_a_budget_cut(cut, over(), 240)
    assert long.endswith("(2 of 8 permutations); one run alone took 4 min.")


def test_a_budget_that_cut_nothing_is_not_mentioned(whole: Comparison) -> None:
    assert (whole.runs_made, whole.replicates_asked) == (4, 2)
    cut = replace(whole, replicates_asked=8)
    assert what_a_budget_cut(whole, over(), 240) == []
    assert what_a_budget_cut(cut, None, 240) == []
    assert what_a_budget_cut(cut, TimeBudget("2min"), 30) == []  # it was interrupted


@pytest.mark.parametrize(
    ("left_s", "words"),
    [
        (None, "; --budget 90s lets runs begin for 90 s more"),
        (300.0, "; --budget 90s lets runs begin for 90 s more"),
        (20.0, "; about 20 s left"),
    ],
)
def test_no_line_predicts_more_time_than_a_budget_leaves(left_s: float | None, words: str) -> None:
    told = RunsDone(foretold=lambda: left_s, budget=TimeBudget("90s"))
    told(4, 24)
    assert told.words() == f"4 of 24 runs done{words}"
    told = RunsDone(foretold=lambda: left_s, budget=over("90s"))
    told(4, 24)
    assert told.words() == (
        "4 of 24 runs done; --budget 90s is over: runs that have begun are finished, no others "
        "begin"
    )


@pytest.mark.parametrize(("budget", "count"), [("1h", 1), ("10s", 0)])
def test_the_time_of_all_runs_is_predicted_only_if_they_will_begin(
    budget: str, count: int, capsys: pytest.CaptureFixture[str]
) -> None:
    now_s = 0.0

    def runner(asked: Sequence[Scenario]) -> Iterator[tuple[int, dict[str, float]]]:
        nonlocal now_s
        for index in range(len(asked)):
            now_s += 5
            yield index, {}

    times = RunTimeEstimator(1, lambda: now_s)
    show = forecast(lambda *_: None, times, 1, budget=TimeBudget(budget))
    scenarios = [Scenario(permutation=order) for order in range(4)]
    for done, _ in enumerate(times.watching(runner)(scenarios), start=1):
        show(done, 4)
    assert capsys.readouterr().err.count("in all") == count
