"""Runs all scenarios of an experiment. Results survive any interruption.

A sweep's folder is one of `run_folder.py`. The grid of runs is in `experiment.py`, and the workers
are in `executors.py`.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from artist.config import ABOUT_THE_TRACE, Scenario
from artist.errors import ArtistError, one_line
from artist.estimates.cache import open_store
from artist.experiments.executors import run_all
from artist.experiments.experiment import Experiment, Run, runs
from artist.experiments.resume import Inputs, adopt, check_inputs
from artist.experiments.run_folder import (
    RESULTS,
    RESULTS_PARQUET,
    check_unchanged,
    claimed,
    remove_leftovers,
    run_summary,
)
from artist.io.processes import cores
from artist.results.run_directory import MANIFEST, write_run
from artist.results.table_files import write_table
from artist.results.terms.glossary import column_of
from artist.run import (
    ABOUT_COMPUTE_TIMES,
    OnTrace,
    build_cluster,
    build_fabric,
    build_trace,
    simulate,
)
from artist.trace.named import is_trace_file

UNEXPECTED = 1
"""Exit code of a run that ended without an error of artist's own: by a bug, or without memory."""


@dataclass(frozen=True, slots=True)
class RunTask:
    """One run for a worker on this machine."""

    id: str
    scenario: Scenario
    folder: Path
    command: tuple[str, ...]
    parent: int
    """Process id of the sweep."""


@dataclass(frozen=True, slots=True)
class RunOutcome:
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
    tasks: Sequence[RunTask], workers: int | None, go_on: Callable[[], bool] = lambda: True
) -> Generator[RunOutcome]:
    """Run tasks in processes of this machine (default: one per core).

    Once `go_on` returns False, no other task begins.
    """
    for _, outcome in run_all(perform, tasks, workers or cores(), on_death=lost, go_on=go_on):
        yield outcome


def perform(task: RunTask) -> RunOutcome:
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


def outcome_of(run_id: str, run: Callable[[], object]) -> RunOutcome:
    """Call `run` and return how it ended. An error becomes an outcome, so other runs go on."""
    try:
        run()
    except ArtistError as error:
        return RunOutcome(run_id, str(error), error.exit_code)
    except Exception as error:  # noqa: BLE001 - a bug in one policy costs its own runs only
        return RunOutcome(run_id, one_line(f"{type(error).__name__}: {error}"), UNEXPECTED)
    return RunOutcome(run_id)


def lost(task: HasId, why: str) -> RunOutcome:
    """The outcome of a run whose worker died."""
    return RunOutcome(task.id, f"{why}; most likely the machine had too little memory", UNEXPECTED)


Engine = Callable[[Sequence[RunTask], int | None], Generator[RunOutcome]]
"""Runs tasks with a number of workers: `locally` or `ray_worker.on_ray`."""


@dataclass(slots=True)
class SweepResult:
    """How far the sweep has come."""

    total: int
    """Runs of the experiment."""
    skipped: int
    """Runs that an earlier sweep had done."""
    done: int = 0
    """Runs done by this sweep."""
    failures: list[RunOutcome] = field(default_factory=list)
    outside: int = 0
    """Finished runs of an earlier grid that this one does not have. They stay, without a row."""
    rows: Sequence[Mapping[str, Any]] = ()
    """The rows of `results.csv`, when the sweep has ended."""


def sweep(
    experiment: Experiment,
    out: Path,
    command: Sequence[str],
    *,
    workers: int | None,
    resume: bool = False,
    overwrite: bool = False,
    on_done: Callable[[SweepResult], None] | None = None,
    on_trace: OnTrace | None = None,
    engine: Engine = locally,
) -> SweepResult:
    """Run the runs that are not done yet; a failing run does not stop the others.

    A folder with an earlier sweep is refused, unless `resume` continues it or `overwrite` removes
    its runs first. `on_trace` is called with each trace that is read from a file, as in `compare`.

    Raises:
        ConfigError: a bad grid; a folder that holds something else, is in use, or cannot be
            written; or runs that read other inputs than there are now.
    """
    grid = runs(experiment)
    with claimed(experiment, out, resume, overwrite):
        return _run_missing(grid, out, command, workers, on_done, on_trace, engine)


def _run_missing(
    grid: Sequence[Run],
    out: Path,
    command: Sequence[str],
    workers: int | None,
    on_done: Callable[[SweepResult], None] | None,
    on_trace: OnTrace | None,
    engine: Engine,
) -> SweepResult:
    """Run the runs that have no directory yet, then write the rows of all."""
    folder = out / "runs"
    remove_leftovers(out)
    outside = adopt(grid, folder)
    missing = [run for run in grid if not (folder / run.id / MANIFEST).is_file()]
    inputs = Inputs()
    for run in missing:
        inputs.of(run.scenario)  # fixes the digests before any run; an unreadable input fails later
    to_run = {run.id for run in missing}
    ready = [run for run in grid if run.id not in to_run]
    check_inputs(ready, folder, inputs, out)
    for run in ready:  # before hours are spent on the others
        run_summary(folder / run.id)
        check_unchanged(folder / run.id)
    if on_trace is not None:
        _tell_traces(missing, on_trace)
    result = SweepResult(len(grid), len(grid) - len(missing), outside=outside)
    if on_done:
        on_done(result)
    tasks = [
        RunTask(run.id, run.scenario, folder / run.id, tuple(command), os.getpid())
        for run in spread(missing)
    ]
    try:
        # `closing` stops the workers at once when we are interrupted. Without it they would go on
        # until Python collects the generator.
        with closing(engine(tasks, workers)) as outcomes:
            for outcome in outcomes:
                if outcome.error:
                    result.failures.append(outcome)
                else:
                    result.done += 1
                if on_done:
                    on_done(result)
    finally:
        remove_leftovers(out)
    failed = {outcome.id for outcome in result.failures}
    done = [run for run in grid if run.id not in failed]
    check_inputs([run for run in done if run.id in to_run], folder, inputs, out)
    result.rows = [_row(run, folder / run.id) for run in done]
    write_table(result.rows, out / RESULTS)
    write_table(result.rows, out / RESULTS_PARQUET)
    return result


def spread(runs: Sequence[Run]) -> list[Run]:
    """The same runs, ordered so that the first n are spread evenly over the grid, for every n.

    So the first tenth takes about a tenth of the time, whichever settings are slow. Multiples of
    the golden ratio modulo 1 have this property.
    """
    golden = (math.sqrt(5) - 1) / 2
    return [runs[index] for index in sorted(range(len(runs)), key=lambda i: i * golden % 1)]


def _tell_traces(missing: Sequence[Run], on_trace: OnTrace) -> None:
    """Read each trace file once, and for each GPU that it may compute on.

    One that cannot be read fails with its runs.
    """
    told = set()
    for run in missing:
        one = run.scenario
        if not is_trace_file(one.trace):
            continue
        about = [getattr(one, name) for name in ("trace", *ABOUT_THE_TRACE, *ABOUT_COMPUTE_TIMES)]
        key = json.dumps(about, default=str)
        if key not in told:
            told.add(key)
            with suppress(ArtistError):
                on_trace(build_trace(one, build_cluster(one, build_fabric(one))), one)


def _row(run: Run, folder: Path) -> Mapping[str, Any]:
    """A run's row: its point in the grid, then its summary without `wall_s`.

    A setting of the grid that is also in the summary appears once.
    """
    summary = run_summary(folder)
    summary.pop("wall_s")
    point = {
        column_of(key): value if isinstance(value, int | float) else str(value)
        for key, value in run.point
    }
    return {"run": run.id, **point, **{k: v for k, v in summary.items() if k not in point}}
