"""How long all runs of a comparison take, foretold from those that are done.

Variants differ much in how long they take, so each is judged by its own runs:

    all = (time of runs done + runs to come x mean of their variant) / workers

A run begins when a worker is free: the first ones at once, each other one when a run ends.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from artist.cli.progress_lines import LEAST_DONE

if TYPE_CHECKING:
    from artist.config import Scenario
    from artist.experiments.comparison.runs import Runner, Summary

_MOST_WAITED = 0.5
"""With more of its runs done, unseen variants are taken for the mean of the others."""


class RunTimes:
    """Watches a runner, and foretells the time of the runs that it was asked for last."""

    def __init__(self, workers: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._workers, self._clock = workers, clock
        self._to_come: dict[int, str] = {}
        self._ends_s: list[float] = []
        self._begun, self._done_s, self._reused = 0.0, 0.0, 0
        self.longest_s = 0.0
        """What the longest run took so far."""
        self._first_s: dict[str, list[float]] = defaultdict(list)
        """Variant -> what its runs took that began with a worker, and took its start too."""
        self._others_s: dict[str, list[float]] = defaultdict(list)

    def watching(self, runner: Runner) -> Runner:
        """The same runner, watched."""

        def watched(scenarios: Sequence[Scenario]) -> Iterator[tuple[int, Summary]]:
            self._to_come = dict(enumerate(map(_variant, scenarios)))
            self._ends_s, self._done_s, self._begun = [], 0.0, self._clock()
            for index, summary in runner(scenarios):
                self._note(index, getattr(runner, "reused", 0))
                yield index, summary

        return watched

    @property
    def is_told(self) -> bool:
        """Whether enough is done: a tenth, and a run of each variant unless that takes long."""
        share = len(self._ends_s) / max(1, self.count)
        seen = all(one in self._first_s or one in self._others_s for one in self._to_come.values())
        return share >= LEAST_DONE and (seen or share >= _MOST_WAITED)

    def foretold(self) -> float | None:
        """Time until all are done, seconds; None while too little is."""
        if not self.is_told:
            return None
        return max(0.0, self.whole_s - (self._clock() - self._begun))

    @property
    def whole_s(self) -> float:
        """Time of all runs that are not there yet, seconds, if `is_told`."""
        means_s = {one: fmean(took) for one, took in {**self._first_s, **self._others_s}.items()}
        unseen_s = fmean(means_s.values())
        to_come_s = sum(means_s.get(one, unseen_s) for one in self._to_come.values())
        return (self._done_s + to_come_s) / min(self._workers, self.count)

    @property
    def count(self) -> int:
        """Runs asked for last, without those that were there already."""
        return len(self._ends_s) + len(self._to_come)

    def _note(self, index: int, reused: int) -> None:
        """A run has ended; it took no time if it was there already."""
        variant = self._to_come.pop(index)
        if reused > self._reused:
            self._reused = reused
            return
        now_s, before = self._clock() - self._begun, len(self._ends_s) - self._workers
        took_s = now_s - (self._ends_s[before] if before >= 0 else 0.0)
        self._ends_s.append(now_s)
        self._done_s += took_s
        self.longest_s = max(self.longest_s, took_s)
        (self._others_s if before >= 0 else self._first_s)[variant].append(took_s)


def _variant(scenario: Scenario) -> str:
    return scenario.model_copy(update={"seed": 0, "permutation": 0}).model_dump_json()
