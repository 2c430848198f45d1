"""The progress of a command: a bar on a terminal, lines elsewhere, a sentence when interrupted.

`Watch` follows one simulation, `bar_of_runs` a number of runs. Lines are in `progress_lines.py`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from artist.cli.interruption import Interrupted, raise_if_lost
from artist.cli.output import note
from artist.cli.progress_lines import RunsDone, WorkDone, duration, speaking, time_left
from artist.units import TICKS_PER_S, counted

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from artist.cli.progress_lines import RunTimeEstimator
    from artist.engine.simulator import Simulator
    from artist.experiments.executors import TimeBudget

QUIET_S = 1.0
"""A simulation shorter than this shows no bar; wall time."""
REFRESH_S = 0.2
"""Least wall time between two updates of the bar."""
NOTED_S = 2.0
"""Least wall time between two updates of the line."""

TICKS_PER_DAY = 86400 * TICKS_PER_S


class Watch:
    """Follows a simulation: the simulator calls it at every question that it asks the policy.

    As a context manager it removes its bar at the end.
    """

    def __init__(self, *, quiet: bool) -> None:
        self._simulator: Simulator | None = None
        self._begun = time.monotonic()
        self._draws, self._quiet = sys.stderr.isatty(), quiet
        self._due = float("inf") if quiet else self._begun + QUIET_S
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._work: WorkDone | None = None
        self._line = ""
        self._open = ExitStack()

    def __enter__(self) -> Watch:
        self._open.enter_context(speaking(self._words, quiet=self._quiet))
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, simulator: Simulator) -> None:
        """Note how far the simulation is, and show it if that is due."""
        raise_if_lost()
        if self._simulator is None:
            self._simulator = simulator
            self._begun = time.monotonic()
        if time.monotonic() < self._due:
            return
        if self._draws:
            self._due = time.monotonic() + REFRESH_S
            self._draw(simulator)
        else:
            self._due = time.monotonic() + NOTED_S
            self._line = self._how_far_now(simulator)

    def how_far(self) -> str:
        """How far the simulation is, in words that follow "interrupted"."""
        if self._simulator is None:
            return "before the first job could start"
        return (
            f"on {_day(self._simulator)} of simulated time, with "
            f"{len(self._simulator.rows.jobs):,} of {self._simulator.jobs_total:,} jobs finished"
        )

    def _words(self) -> str:
        return self._line or f"{duration(time.monotonic() - self._begun)} so far, preparing"

    def _how_far_now(self, simulator: Simulator) -> str:
        """Jobs that have finished, run and wait, and how long the rest will take."""
        if self._work is None:
            self._work = WorkDone(simulator.jobs)
        left = time_left(self._work.share(simulator), time.monotonic() - self._begun)
        return (
            f"{_day(simulator)}: {len(simulator.rows.jobs):,} of {simulator.jobs_total:,} jobs "
            f"finished, {simulator.jobs_running:,} running, {simulator.jobs_waiting:,} waiting"
            f"{left}"
        )

    def _draw(self, simulator: Simulator) -> None:
        """Draw the bar: finished jobs, and how many run and wait now."""
        if self._bar is None:
            self._bar = _bar()
            self._task = self._bar.add_task("", total=simulator.jobs_total)
            self._bar.start()
        assert self._task is not None  # set together with the bar
        finished = len(simulator.rows.jobs)
        rate = finished / (time.monotonic() - self._begun)
        self._bar.update(
            self._task,
            completed=finished,
            description=(
                f"{_day(simulator)}: {simulator.jobs_running:,} running, "
                f"{simulator.jobs_waiting:,} waiting, {rate:,.0f} jobs/s"
            ),
        )


def _day(simulator: Simulator) -> str:
    return f"day {simulator.now / TICKS_PER_DAY:,.1f}"


def _bar() -> Progress:
    """A bar after its text. It takes the width that the text leaves on the terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    columns = (TextColumn("{task.description}"), BarColumn(None), TaskProgressColumn(), Remaining())
    return Progress(*columns, console=Console(stderr=True), expand=True)


@contextmanager
def bar_of_runs(
    *,
    quiet: bool,
    what: str = "runs",
    foretold: Callable[[], float | None] | None = None,
    budget: TimeBudget | None = None,
) -> Iterator[Callable[[int, int], None]]:
    """A function `show(done, total)`, which draws a bar of runs if stderr is a terminal.

    Elsewhere there is a line every ten seconds. `what` names what is counted; `foretold` estimates
    the seconds left. Under a `budget`, runs may end before all are done.
    """
    if quiet or not sys.stderr.isatty():
        runs = RunsDone(what, foretold, budget)
        with speaking(runs.words, quiet=quiet):
            yield runs
        return
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn

    # The bar estimates the time of all runs; a budget may end them sooner.
    estimate = () if budget is not None else (TimeRemainingColumn(),)
    columns = (*Progress.get_default_columns()[:2], MofNCompleteColumn(), *estimate)
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def counting(
    show: Callable[[int, int], None], out: Path | None = None
) -> Iterator[Callable[[int, int], None]]:
    """A function `show(done, total)` that also counts, for the message of an interruption.

    `out` is the folder that keeps finished runs; None if they are lost.
    """
    latest = (0, 0)

    def on_done(done: int, total: int) -> None:
        nonlocal latest
        raise_if_lost()
        latest = (done, total)
        show(done, total)

    try:
        yield on_done
    except Interrupted as interrupted:
        done, total = latest
        far = f"with {done:,} of {total:,} runs done" if done else "before the first run was done"
        kept = f"they are in {out}; add --resume to continue" if out else "nothing was written"
        interrupted.how_far = f"{far}; {kept}"
        raise


def forecast(
    show: Callable[[int, int], None],
    times: RunTimeEstimator,
    workers: int,
    most: int = 0,
    budget: TimeBudget | None = None,
) -> Callable[[int, int], None]:
    """A function `show(done, total)` that also says, once, how long all runs will take.

    `most` is the number of runs if undecided verdicts add all they may. Nothing is said if the runs
    do not fit into the `budget`.
    """
    told = False

    def on_done(done: int, total: int) -> None:
        nonlocal told
        show(done, total)
        if told or not times.is_told:
            return
        told = True
        whole_s = times.whole_s * total / times.count  # of all worlds
        if budget is not None and whole_s > budget.length_s:
            return
        on = f"{counted(total, 'run')} on {counted(workers, 'worker')}"
        more = ""
        if most > total:
            more = (
                f", up to {duration(whole_s * most / total)} if undecided verdicts add "
                f"{most - total:,} more"
            )
        note(f"{on}, about {duration(whole_s)} in all{more}")

    return on_done
