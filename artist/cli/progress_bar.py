"""How far a command has come: a bar on a terminal, a sentence when it is interrupted.

`Watch` follows one simulation, `bar_of_runs` a number of runs.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from artist.cli.interruption import Interrupted, raise_if_lost
from artist.cli.output import note
from artist.units import TICKS_PER_S

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from artist.engine.simulator import Simulator

QUIET_S = 1.0
"""A simulation shorter than this shows no bar, in seconds of wall time."""
REFRESH_S = 0.2
"""The bar is drawn at most this often, in seconds of wall time."""

TICKS_PER_DAY = 86400 * TICKS_PER_S


class Watch:
    """Follows a simulation: the simulator calls it at every question that it asks the policy.

    As a context manager it removes its bar at the end.
    """

    def __init__(self, *, quiet: bool) -> None:
        self._simulator: Simulator | None = None
        self._begun = time.monotonic()
        self._due = self._begun + QUIET_S if sys.stderr.isatty() and not quiet else float("inf")
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, simulator: Simulator) -> None:
        """Note how far the simulation is, and show it if the bar is due."""
        raise_if_lost()
        if self._simulator is None:
            self._simulator = simulator
            self._begun = time.monotonic()
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + REFRESH_S
            self._draw(simulator)

    def how_far(self) -> str:
        """How far the simulation is, in words that follow "interrupted"."""
        if self._simulator is None:
            return "before the first job could start"
        return (
            f"on {_day(self._simulator)} of simulated time, with "
            f"{len(self._simulator.rows.jobs):,} of {self._simulator.jobs_total:,} jobs finished"
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
    """A bar with the text first. The bar takes the width that is left on the terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    columns = (TextColumn("{task.description}"), BarColumn(None), TaskProgressColumn(), Remaining())
    return Progress(*columns, console=Console(stderr=True), expand=True)


@contextmanager
def bar_of_runs(*, quiet: bool, what: str = "runs") -> Iterator[Callable[[int, int], None]]:
    """A function `show(done, total)`, which draws a bar of runs if stderr is a terminal.

    `what` names what is counted.
    """
    if quiet or not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = (*Progress.get_default_columns()[:2], MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def counting(show: Callable[[int, int], None]) -> Iterator[Callable[[int, int], None]]:
    """A function `show(done, total)` that also counts, for the message of an interruption.

    For commands that keep nothing of finished runs.
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
        interrupted.how_far = f"{far}; nothing was written"
        raise


def forecast(show: Callable[[int, int], None], workers: int) -> Callable[[int, int], None]:
    """A function `show(done, total)` that also says, once, how long all runs will take.

    The estimate extrapolates the first runs, two of each worker. It is rough where later runs are
    of another kind.
    """
    begun = time.monotonic()
    told = False

    def on_done(done: int, total: int) -> None:
        nonlocal told
        show(done, total)
        if not told and done >= min(total, 2 * workers):
            told = True
            whole_s = (time.monotonic() - begun) / done * total
            note(f"{total:,} runs on {workers} workers, about {duration(whole_s)} in all")

    return on_done


def duration(seconds: float) -> str:
    """A rough time in words: `40 s`, `3 min`, `2.5 h`."""
    if seconds < 100:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
