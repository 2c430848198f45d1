"""How far a simulation has come: a bar where a person watches, a sentence where it is cut short."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from artist.cli.interruption import raise_if_lost

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from artist.engine.simulator import Simulator

QUIET_S = 1.0
"""Runs shorter than this show no bar."""
REFRESH_S = 0.2


class Watch:
    """Looks on at every question of a run. As a context manager it takes its bar away again."""

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
        """Note where the run is; every fifth of a second, show it."""
        raise_if_lost()
        if self._simulator is None:
            self._simulator = simulator
            self._begun = time.monotonic()
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + REFRESH_S
            self._show(simulator)

    def how_far(self) -> str:
        """Where the run stands, in words that follow "interrupted"."""
        if self._simulator is None:
            return "before the first job could start"
        return (
            f"on {_day(self._simulator)} of simulated time, with "
            f"{len(self._simulator.rows.jobs):,} of {self._simulator.jobs_total:,} jobs finished"
        )

    def _show(self, simulator: Simulator) -> None:
        if self._bar is None:
            self._bar = _bar()
            self._task = self._bar.add_task("", total=simulator.jobs_total)
            self._bar.start()
        assert self._task is not None  # made with the bar
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
    return f"day {simulator.now / 8.64e13:,.1f}"


def _bar() -> Progress:
    """Text first; the bar takes what the terminal's width leaves."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    columns = (TextColumn("{task.description}"), BarColumn(None), TaskProgressColumn(), Remaining())
    return Progress(*columns, console=Console(stderr=True), expand=True)
