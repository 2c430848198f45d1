"""Does long work report progress, even to a pipe, and is the time left about right?"""

from __future__ import annotations

import heapq
import random
import time

import pytest

from artist.cli import progress_lines
from artist.cli.progress_bar import forecast
from artist.cli.progress_lines import (
    RunsDone,
    RunTimeEstimator,
    WorkDone,
    duration,
    speaking,
    time_left,
)
from artist.cli.remarks import slow_settings
from artist.config import Scenario
from artist.experiments.experiment import Experiment, Run, runs
from artist.experiments.sweep import spread
from artist.run import drive, prepare


def test_a_pipe_gets_a_line_every_interval_also_while_one_run_goes_on(monkeypatch, capsys) -> None:
    monkeypatch.setattr(progress_lines, "EVERY_S", 0.02)
    told = RunsDone()
    with speaking(told.words, quiet=False):
        while capsys.readouterr().err.count("preparing") < 1:
            time.sleep(0.01)
        told(3, 12)
        time.sleep(0.2)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) >= 3
    assert lines[-1].startswith("3 of 12 runs done; about ")
    time.sleep(0.05)
    assert capsys.readouterr().err == ""


def test_quiet_commands_say_nothing(monkeypatch, capsys) -> None:
    monkeypatch.setattr(progress_lines, "EVERY_S", 0.01)
    with speaking(lambda: "still there", quiet=True):
        time.sleep(0.05)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("done", "words"), [(0.05, ""), (0.1, "; about 90 s left"), (0.5, "; about 10 s left"), (1, "")]
)
def test_the_time_left_is_shown_from_a_tenth_on(done: float, words: str) -> None:
    assert time_left(done, 10.0) == words


def finished(costs: list[float], workers: int) -> list[float]:
    """When runs of these costs end, each begun as soon as a worker is free."""
    free, ends = [0.0] * workers, []
    for cost in costs:
        end = heapq.heappop(free) + cost
        heapq.heappush(free, end)
        ends.append(end)
    return sorted(ends)


@pytest.mark.parametrize("workers", [1, 2, 8])
def test_a_tenth_of_a_sweep_foretells_its_time_within_30_percent(workers: int) -> None:
    """One policy takes nine times as long as another, and one size eight times as long."""
    grid = {"policy": ["fifo", "las", "dally"], "racks": [1, 2, 8], "permutation": [*range(50)]}
    cells = runs(Experiment(name="e", version=1, base={"trace": "tiny-batch"}, grid=grid))
    noise = random.Random(1)
    cost_s = {
        cell.id: {"fifo": 1.0, "las": 3.0, "dally": 9.0}[cell.scenario.policy]
        * cell.scenario.racks
        * noise.lognormvariate(0, 0.3)
        for cell in cells
    }

    def foretold(cells: list[Run]) -> float:
        """The time that is predicted after a tenth of the true one, over the true one."""
        ends = finished([cost_s[cell.id] for cell in cells], workers)
        now = ends[-1] / 10
        done = sum(end <= now for end in ends)
        return now / done * len(cells) / ends[-1]

    assert foretold(spread(cells)) == pytest.approx(1, abs=0.3)
    assert foretold(cells) < 0.5


class _Clocked:
    """A runner whose runs end when `finished` says, on a clock of its own."""

    def __init__(self, cost_s: list[float], workers: int, start_s: float) -> None:
        free, ends = [start_s] * workers, []
        for index, cost in enumerate(cost_s):
            end = heapq.heappop(free) + cost
            heapq.heappush(free, end)
            ends.append((end, index))
        self._ends, self.now_s, self.reused = sorted(ends), 0.0, 0
        self.last_s = self._ends[-1][0]

    def __call__(self, scenarios):
        assert len(scenarios) == len(self._ends)
        for end_s, index in self._ends:
            self.now_s = end_s
            yield index, {}


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("slow", [0, 1, 9])
def test_a_tenth_of_a_comparison_foretells_its_time_within_30_percent(
    workers: int, slow: int
) -> None:
    """One of ten policies takes as long as all others together, whichever it is."""
    noise, policies = random.Random(workers), [f"p{i}" for i in range(10)]
    scenarios = [
        Scenario(policy=name, permutation=order) for order in range(8) for name in policies
    ]
    cost_s = [
        (9.0 if one.policy == policies[slow] else 1.0) * noise.lognormvariate(0, 0.1)
        for one in scenarios
    ]
    runner, told, at = _Clocked(cost_s, workers, start_s=1.5), [], []
    times = RunTimeEstimator(workers, lambda: runner.now_s)
    for done, _ in enumerate(times.watching(runner)(scenarios), 1):
        left_s = times.foretold()
        if left_s is not None:
            told.append((runner.now_s + left_s) / runner.last_s)
            at.append(done)
    assert at[0] <= 18  # of 80
    assert told[0] == pytest.approx(1, abs=0.3)
    assert told[-1] == pytest.approx(1, abs=0.01)


def test_reused_runs_count_as_no_time() -> None:
    runner = _Clocked([0.0, 0.0, 5.0, 5.0, 5.0, 5.0], 1, start_s=0.0)
    times = RunTimeEstimator(1, lambda: runner.now_s)
    told = []
    for index, _ in times.watching(runner)([Scenario(permutation=i) for i in range(6)]):
        runner.reused = 2 if index == 0 else runner.reused
        told.append(times.foretold())
    assert told[2:] == [15.0, 10.0, 5.0, 0.0]


def test_the_share_of_a_simulations_work_rises_from_none_to_all() -> None:
    prepared = prepare(Scenario(racks=1, jobs=80, trace="sensetime-batch-500", policy="las"))
    work, shares = WorkDone(prepared.simulator.jobs), []
    drive(prepared, lambda simulator: shares.append(work.share(simulator)))
    assert shares == sorted(shares)
    assert shares[0] == pytest.approx(0)
    assert 0.9 < shares[-1] <= 1
    assert work.share(prepared.simulator) == pytest.approx(1)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"policy": "lookahead(fifo)"}, "lookahead tries every decision"),
        ({"contention": "phase", "policy_options": {"placement": "any"}}, "hundreds of times"),
        ({"contention": "fluid", "policy": "random-placement(las)"}, "hundreds of times"),
        ({"backend": "astra-docker"}, "backend astra-docker runs ASTRA-sim"),
        ({"contention": "mean"}, "contention mean takes 20 to 70 times as long"),
        ({}, ""),
    ],
)
def test_settings_that_take_a_hundred_times_as_long_are_announced_once(
    settings: dict, words: str
) -> None:
    told = slow_settings([Scenario(**settings), Scenario(**settings)], times=4)
    assert len(told) == bool(words)
    assert words in "".join(told)


def test_runs_that_take_seconds_are_not_called_slow() -> None:
    scattered = {"contention": "phase", "policy_options": {"placement": "any"}}
    few = Scenario(**scattered, jobs=2)
    assert not slow_settings([few])
    assert slow_settings([few] * 300)  # 600 jobs in all
    assert not slow_settings([Scenario(**scattered, trace="no-such-file.csv")])


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.2, "1 s"), (99, "99 s"), (150, "2 min"), (7200, "2.0 h")]
)
def test_durations_are_rough(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_no_time_is_predicted_while_nothing_is_done(capsys) -> None:
    """All runs so far were reused."""
    shown: list[tuple[int, int]] = []
    told = forecast(lambda *both: shown.append(both), RunTimeEstimator(1), workers=1)
    told(0, 0)
    told(0, 4)
    assert shown == [(0, 0), (0, 4)]
    assert capsys.readouterr().err == ""
