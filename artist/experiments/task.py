"""One run of a sweep: the task that a worker gets, and the outcome."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from artist.config import Scenario
from artist.errors import ArtistError, one_line
from artist.estimates.cache import open_store
from artist.experiments.executors import cores, run_all
from artist.results.run_directory import write_run
from artist.run import simulate

UNEXPECTED = 1
"""Exit code of a run that ended without an error of artist's own: by a bug, or without memory."""


@dataclass(frozen=True, slots=True)
class Task:
    """One run for a worker on this machine."""

    id: str
    scenario: Scenario
    folder: Path
    command: tuple[str, ...]
    parent: int
    """Process id of the sweep."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one run ended. `error` is empty if the run is done."""

    id: str
    error: str = ""
    exit_code: int = 0


class HasId(Protocol):
    """A task of any kind, here or on another machine."""

    @property
    def id(self) -> str:
        """The run's id."""
        ...


def locally(
    tasks: Sequence[Task], workers: int | None, go_on: Callable[[], bool] = lambda: True
) -> Generator[Outcome]:
    """Run tasks in processes of this machine (default: one per core).

    Once `go_on` says no, no other task is begun.
    """
    for _, outcome in run_all(perform, tasks, workers or cores(), on_death=lost, go_on=go_on):
        yield outcome


def perform(task: Task) -> Outcome:
    """One run, in a worker: simulate and write its directory."""

    def run() -> None:
        with open_store() as store:
            result = simulate(task.scenario, store=store)
        # If the sweep was killed, this worker may outlive it by a moment, and a resumed sweep may
        # be writing this run now.
        if os.getpid() == task.parent or os.getppid() == task.parent:
            # A run that is there by now has the same scenario, so either of the two may stay.
            write_run(result, task.folder, task.command, overwrite=True)

    return outcome_of(task.id, run)


def outcome_of(run_id: str, run: Callable[[], object]) -> Outcome:
    """Call `run`; how it ended. Any error becomes an outcome, so that the other runs go on."""
    try:
        run()
    except ArtistError as error:
        return Outcome(run_id, str(error), error.exit_code)
    except Exception as error:  # noqa: BLE001 - a bug in one policy costs its own runs only
        return Outcome(run_id, one_line(f"{type(error).__name__}: {error}"), UNEXPECTED)
    return Outcome(run_id)


def lost(task: HasId, why: str) -> Outcome:
    """The outcome of a run whose worker died."""
    return Outcome(task.id, f"{why}; most likely the machine had too little memory", UNEXPECTED)
