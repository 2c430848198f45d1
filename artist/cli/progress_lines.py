"""Long work speaks where no bar can be drawn: a line every ten seconds on stderr.

A thread writes the lines, so they also come while one run or one query takes minutes.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import TYPE_CHECKING

from artist.cli.output import note

if TYPE_CHECKING:
    from artist.engine.simulator import Simulator
    from artist.experiments.time_budget import TimeBudget
    from artist.workload.job import Job

EVERY_S = 10.0
"""Wall time between two lines."""

LEAST_DONE = 0.1
"""With less of its work done, nothing is said of how long the rest will take."""


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
    """How long the rest takes at the pace so far, to follow other words; `done` is a share."""
    if not LEAST_DONE <= done < 1:
        return ""
    return f"; about {duration(elapsed_s * (1 - done) / done)} left"


class RunsDone:
    """How many runs of many are done. They take similar times, in the order in which they run."""

    def __init__(
        self,
        what: str = "runs",
        foretold: Callable[[], float | None] | None = None,
        budget: TimeBudget | None = None,
    ):
        """`foretold` says how many seconds are left, better than the number of runs does.

        Not more are told than a `budget` leaves, and none of runs that will not begin.
        """
        self._what, self._foretold, self._budget = what, foretold, budget
        self._begun = time.monotonic()
        self._done, self._total = 0, 0

    def __call__(self, done: int, total: int) -> None:
        """Note the latest numbers."""
        self._done, self._total = done, total

    def words(self) -> str:
        """The line that says it."""
        elapsed_s = time.monotonic() - self._begun
        if not self._total:
            return f"{duration(elapsed_s)} so far, preparing"
        left = time_left(self._done / self._total, elapsed_s)
        if self._foretold is not None and self._done < self._total:
            left_s = self._foretold()
            left = "" if left_s is None else f"; about {duration(left_s)} left"
        if self._budget is not None and self._done < self._total:
            left = within(self._budget, None if self._foretold is None else self._foretold(), left)
        return f"{self._done:,} of {self._total:,} {self._what} done{left}"


def within(budget: TimeBudget, left_s: float | None, words: str) -> str:
    """What is left under a budget: `words` of `left_s` seconds if these are fewer."""
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
    The first misleads in batches, where short jobs finish first; the second where long jobs fill
    the cluster at the beginning.
    """

    def __init__(self, jobs: Sequence[Job]) -> None:
        """`jobs` are all jobs, in the order of arrival."""
        gpu_s = [_gpu_s(job, job.iterations) for job in jobs]
        self._to_come_gpu_s = [*accumulate(reversed(gpu_s), initial=0.0)]
        """Of the last n jobs, by n."""

    def share(self, simulator: Simulator) -> float:
        """The share that is done at a question."""
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
