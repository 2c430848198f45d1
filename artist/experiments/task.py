"""One run of a sweep: what a worker is given, and how it ended."""

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

# Of a run that ended in a way no error of ours describes: a mistake in artist, or no memory.
UNEXPECTED = 1


@dataclass(frozen=True, slots=True)
class Task:
    """What a worker on this machine needs for one run."""

    id: str
    scenario: Scenario
    folder: Path
    command: tuple[str, ...]
    parent: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one run ended; `error` is empty if it is done."""

    id: str
    error: str = ""
    exit_code: int = 0


class HasId(Protocol):
    """Anything that names its run."""

    @property
    def id(self) -> str:
        """The run's name."""
        ...


def locally(tasks: Sequence[Task], workers: int | None) -> Generator[Outcome]:
    """Run tasks in processes of this machine (default: one per core)."""
    for _, outcome in run_all(perform, tasks, workers or cores(), died=lost):
        yield outcome


def perform(task: Task) -> Outcome:
    """One run, in a worker: simulate and write its directory."""

    def run() -> None:
        with open_store() as store:
            found = simulate(task.scenario, store=store)
        # An orphan's run may be another sweep's by now.
        if os.getpid() == task.parent or os.getppid() == task.parent:
            write_run(found, task.folder, task.command)

    return outcome_of(task.id, run)


def outcome_of(run_id: str, run: Callable[[], object]) -> Outcome:
    """How `run` ended: nothing that one run does stops the others."""
    try:
        run()
    except ArtistError as error:
        return Outcome(run_id, str(error), error.exit_code)
    except Exception as error:  # noqa: BLE001  (a mistake in one policy costs its runs only)
        return Outcome(run_id, one_line(f"{type(error).__name__}: {error}"), UNEXPECTED)
    return Outcome(run_id)


def lost(task: HasId, why: str) -> Outcome:
    """The outcome of a run whose worker died."""
    return Outcome(task.id, f"{why}; most likely the machine had too little memory", UNEXPECTED)
