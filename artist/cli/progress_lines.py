"""Progress where no bar can be drawn: a line every ten seconds on stderr.

A thread writes the lines, so they also appear while one run or one query takes minutes. The time
left is estimated from the work that is done.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from statistics import fmean
from typing import TYPE_CHECKING

from artist.cli.output import note

if TYPE_CHECKING:
    from artist.config import Scenario
    from artist.engine.simulator import Simulator
    from artist.experiments.comparison.runs import Runner, Summary
    from artist.experiments.executors import TimeBudget
    from artist.workload.job import Job

EVERY_S = 10.0
"""Wall time between two lines."""

LEAST_DONE = 0.1
"""The time left is estimated once this share of the work is done."""


@contextmanager
def speaking(words: Callable[[], str], *, quiet: bool) -> Iterator[None]:
    """Write `words()` to stderr every ten seconds, unless stderr is a terminal."""
    if quiet or sys.stderr.isatty():
        yield
        return
    ended = threading.Event()

    def speak() -> None:
        while not ended.wait(EVERY_S):
            note(words())

    thread = threading.Thread(target=speak, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def duration(seconds: float) -> str:
    """A rough time in words: `40 s`, `3 min`, `2.5 h`."""
    if seconds < 100:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def time_left(done: float, elapsed_s: float) -> str:
    """How long the rest takes at the pace so far, to be appended; `done` is a share."""
    if not LEAST_DONE <= done < 1:
        return ""
    return f"; about {duration(elapsed_s * (1 - done) / done)} left"


class RunsDone:
    """Counts the runs that are done. Estimates the time left as if all took equally long."""

    def __init__(
        self,
        what: str = "runs",
        foretold: Callable[[], float | None] | None = None,
        budget: TimeBudget | None = None,
    ):
        """`foretold` gives a better estimate of the seconds left, None while it has none.

        If the runs do not fit into `budget`, the line says for how long others will begin.
        """
        self._what, self._foretold, self._budget = what, foretold, budget
        self._begun = time.monotonic()
        self._done, self._total = 0, 0

    def __call__(self, done: int, total: int) -> None:
        """Note the latest numbers."""
        self._done, self._total = done, total

    def words(self) -> str:
        """The line to write."""
        elapsed_s = time.monotonic() - self._begun
        if not self._total:
            return f"{duration(elapsed_s)} so far, preparing"
        left, left_s = time_left(self._done / self._total, elapsed_s), None
        if self._done < self._total:
            if self._foretold is not None:
                left_s = self._foretold()
                left = "" if left_s is None else f"; about {duration(left_s)} left"
            if self._budget is not None:
                left = within(self._budget, left_s, left)
        return f"{self._done:,} of {self._total:,} {self._what} done{left}"


def within(budget: TimeBudget, left_s: float | None, words: str) -> str:
    """What is left under a budget. It is `words`, about `left_s` seconds, if the runs fit in it."""
    if not budget():
        return (
            f"; --budget {budget.text} is over: runs that have begun are finished, no others begin"
        )
    if left_s is not None and left_s <= budget.left_s:
        return words
    return f"; --budget {budget.text} lets runs begin for {duration(budget.left_s)} more"


class WorkDone:
    """The share of a simulation's work that is done.

    It is the mean of two shares: of jobs that have finished, and of the GPU time that jobs compute.
    The first misleads in batches, where short jobs finish first. The second misleads where long
    jobs fill the cluster at the beginning.
    """

    def __init__(self, jobs: Sequence[Job]) -> None:
        """`jobs` are all jobs, in the order of arrival."""
        gpu_s = [_gpu_s(job, job.iterations) for job in jobs]
        self._to_come_gpu_s = [*accumulate(reversed(gpu_s), initial=0.0)]
        """Of the last n jobs, by n."""

    def share(self, simulator: Simulator) -> float:
        """The share that is done when the policy is asked."""
        view, total = simulator.view(), simulator.jobs_total
        finished = len(simulator.rows.jobs)
        here = [*view.running.values(), *view.waiting.values()]
        left_gpu_s = self._to_come_gpu_s[total - finished - len(here)] + sum(
            _gpu_s(one.job, one.job.iterations - one.iterations_done(view.now)) for one in here
        )
        whole_gpu_s = self._to_come_gpu_s[-1]
        return (finished / total + 1 - left_gpu_s / whole_gpu_s) / 2


def _gpu_s(job: Job, iterations: int) -> float:
    return iterations * job.compute_s * job.gpus


_MOST_WAITED = 0.5
"""From this share of runs on, variants without a run are taken to last as long as the others."""


class RunTimeEstimator:
    """Watches a runner and estimates the time of the runs that it was last asked for.

    Variants differ much in run time, so each has a mean of its own:

        all = (time of runs done + runs to come x mean of their variant) / workers

    The first runs begin at once, one per worker; each other run begins when a run ends.
    """

    def __init__(self, workers: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._workers, self._clock = workers, clock
        self._to_come: dict[int, str] = {}
        self._ends_s: list[float] = []
        self._begun, self._done_s, self._reused = 0.0, 0.0, 0
        self.longest_s = 0.0
        """Time of the longest run so far."""
        self._first_s: dict[str, list[float]] = defaultdict(list)
        """Variant -> times of runs that were the first of a worker; they include its start."""
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
        """Whether enough is done for an estimate.

        That is a tenth of the runs, with one of each variant; or half of them.
        """
        share = len(self._ends_s) / max(1, self.count)
        seen = all(one in self._first_s or one in self._others_s for one in self._to_come.values())
        return share >= LEAST_DONE and (seen or share >= _MOST_WAITED)

    def foretold(self) -> float | None:
        """Time until all runs are done, seconds; None while there is no estimate."""
        if not self.is_told:
            return None
        return max(0.0, self.whole_s - (self._clock() - self._begun))

    @property
    def whole_s(self) -> float:
        """Estimated time of all runs that are not reused, seconds; valid if `is_told`."""
        means_s = {one: fmean(took) for one, took in {**self._first_s, **self._others_s}.items()}
        unseen_s = fmean(means_s.values())
        to_come_s = sum(means_s.get(one, unseen_s) for one in self._to_come.values())
        return (self._done_s + to_come_s) / min(self._workers, self.count)

    @property
    def count(self) -> int:
        """Number of runs last asked for, without those that were reused."""
        return len(self._ends_s) + len(self._to_come)

    def _note(self, index: int, reused: int) -> None:
        """Note that a run has ended. A reused run took no time."""
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
