"""Runs all scenarios of an experiment. Results survive any interruption.

A sweep's folder holds

    experiment.json                   the experiment, to recognise it on a resume
    runs/ID/                          one run directory per run
    results.csv, results.parquet      one row per run, written at the end

A run is done when its directory exists, and the directory appears by one rename. So a sweep that
is killed at any moment can resume with the runs that are missing. The grid of runs is in
`experiment.py`, one run is in `task.py`, and the workers are in `executors.py`.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from artist.config import ABOUT_THE_TRACE
from artist.errors import ArtistError, ConfigError, TraceError
from artist.experiments.experiment import Experiment, Run, runs
from artist.experiments.resume import Inputs, adopt, check_inputs
from artist.experiments.task import Outcome, Task, locally
from artist.io.partials import is_partial, partial_path, partials, remove
from artist.io.reading import read_text
from artist.io.writing import special_kind, write_whole
from artist.results.run_directory import MANIFEST, RUN_DIRECTORY, SUMMARY, changed_file
from artist.results.table_files import write_table
from artist.run import OnTrace, read_trace_of
from artist.trace.named import is_trace_file

EXPERIMENT = "experiment.json"
RESULTS = "results.csv"
RESULTS_PARQUET = "results.parquet"
LOCK = ".lock"

Engine = Callable[[Sequence[Task], int | None], Generator[Outcome]]
"""Runs tasks with so many workers: `task.locally` or `remote.on_ray`."""


@dataclass(slots=True)
class SweepResult:
    """How far the sweep has come."""

    total: int
    """Runs of the experiment."""
    skipped: int
    """Runs that an earlier sweep had done."""
    done: int = 0
    """Runs done by this sweep."""
    failures: list[Outcome] = field(default_factory=list)
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

    A folder with an earlier sweep is refused, unless `resume` goes on with it or `overwrite`
    removes its runs first. `on_trace` is told each trace that is read from a file, of its first
    seed, before anything is simulated.

    Raises:
        ConfigError: a bad grid; a folder that holds something else, is in use, or cannot be
            written; or runs that read other inputs than there are now.
    """
    grid = runs(experiment)
    if resume and overwrite:
        raise ConfigError("--resume keeps the runs and --overwrite removes them: give one of both")
    try:
        with _claimed(experiment, out, resume, overwrite):
            return _run_missing(grid, out, command, workers, on_done, on_trace, engine)
    except OSError as cause:
        raise ConfigError(
            f"--out {out}: cannot be written ({cause.strerror or cause}); make room, or choose "
            "another folder"
        ) from cause


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
    _remove_leftovers(out)
    outside = adopt(grid, folder)
    missing = [run for run in grid if not (folder / run.id / MANIFEST).is_file()]
    inputs = Inputs()
    for run in missing:
        inputs.of(run.scenario)  # as they are now; what cannot be read fails with its run
    to_run = {run.id for run in missing}
    ready = [run for run in grid if run.id not in to_run]
    check_inputs(ready, folder, inputs, out)
    for run in ready:  # before hours are spent on the others
        _summary(folder / run.id)
        _check_unchanged(folder / run.id)
    if on_trace is not None:
        _tell_traces(missing, on_trace)
    result = SweepResult(len(grid), len(grid) - len(missing), outside=outside)
    if on_done:
        on_done(result)
    tasks = [
        Task(run.id, run.scenario, folder / run.id, tuple(command), os.getpid())
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
        _remove_leftovers(out)
    failed = {outcome.id for outcome in result.failures}
    done = [run for run in grid if run.id not in failed]
    check_inputs([run for run in done if run.id in to_run], folder, inputs, out)
    result.rows = [_row(run, folder / run.id) for run in done]
    write_table(result.rows, out / RESULTS)
    write_table(result.rows, out / RESULTS_PARQUET)
    return result


def spread(runs: Sequence[Run]) -> list[Run]:
    """The same runs in an order whose every beginning is spread evenly over the grid.

    So the first tenth of them takes about a tenth of the time, whatever settings cost time.
    Multiples of the golden ratio, modulo 1, are spread so.
    """
    golden = (math.sqrt(5) - 1) / 2
    return [runs[index] for index in sorted(range(len(runs)), key=lambda i: i * golden % 1)]


def _tell_traces(missing: Sequence[Run], on_trace: OnTrace) -> None:
    """Read each trace file once. One that cannot be read fails with its runs."""
    told = set()
    for run in missing:
        if not is_trace_file(run.scenario.trace):
            continue
        about = [getattr(run.scenario, name) for name in ("trace", *ABOUT_THE_TRACE)]
        key = json.dumps(about, default=str)
        if key not in told:
            told.add(key)
            with suppress(ArtistError):
                on_trace(read_trace_of(run.scenario))


@contextmanager
def _claimed(experiment: Experiment, out: Path, resume: bool, overwrite: bool) -> Iterator[None]:
    """Lock the folder for this sweep and mark it as this experiment's.

    The operating system releases the lock when the process ends, also when it is killed.
    """
    import fcntl

    # Refuse before anything is written there.
    if kind := special_kind(out):
        raise ConfigError(f"--out {out}: is {kind}; give the name of a folder")
    if out.exists() and not (out / EXPERIMENT).is_file() and _holds_other_files(out):
        raise ConfigError(f"--out {out}: exists and holds no experiment; choose another folder")
    out.mkdir(parents=True, exist_ok=True)
    with (out / LOCK).open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigError(f"--out {out}: another sweep is writing there; wait for it") from None
        if overwrite:
            _remove_runs(out)
        _mark(experiment, out, resume)
        yield


def _holds_other_files(out: Path) -> bool:
    """Whether `out` holds more than a sweep leaves that was killed before its marker was there."""
    ours = [out / LOCK, *partials(out / EXPERIMENT)]
    return not out.is_dir() or any(path not in ours for path in out.iterdir())


def _mark(experiment: Experiment, out: Path, resume: bool) -> None:
    """Write the experiment into the folder, or compare it with the one that is there.

    An experiment without a finished run, as after a typing mistake, does not block another one.
    """
    text = experiment.model_dump_json(indent=2) + "\n"
    marker = out / EXPERIMENT
    if not marker.is_file() or not any((out / "runs").glob(f"*/{MANIFEST}")):
        write_whole(marker, text)
        return
    former = read_text(marker)
    if former == text and not resume:
        raise ConfigError(
            f"--out {out}: holds this experiment already; add --resume to go on, or --overwrite to "
            "begin again"
        )
    if former != text:
        _check_extends(former, experiment, out, resume)
        write_whole(marker, text)


def _check_extends(former: str, experiment: Experiment, out: Path, resume: bool) -> None:
    """Refuse to go on with runs of another experiment; its grid and base may have changed."""
    try:
        earlier = Experiment.model_validate_json(former)
    except ValueError:
        earlier = None
    if earlier is None or (earlier.name, earlier.version) != (experiment.name, experiment.version):
        raise ConfigError(
            f"--out {out}: holds another experiment or version of it; choose another folder, or "
            "replace it with --overwrite"
        )
    if not resume:
        raise ConfigError(
            f"--out {out}: holds this experiment with another grid or base; add --resume to keep "
            "its runs and make those that are new, or --overwrite to begin again"
        )


def _refuse_foreign(out: Path) -> None:
    """Refuse to remove what no sweep wrote.

    Raises:
        ConfigError: the mark or a run is not artist's, or the folder of runs is elsewhere.
    """
    folder, marker = out / "runs", out / EXPERIMENT
    other: Path | None = None
    if folder.is_symlink():
        other = folder
    elif marker.is_file() and not _is_experiment(marker):
        other = marker
    else:
        runs_there = [manifest.parent for manifest in sorted(folder.glob(f"*/{MANIFEST}"))]
        links = [run for run in runs_there if run.is_symlink()]
        other = next(iter(links), None) or next(
            filter(None, map(RUN_DIRECTORY.foreign, runs_there)), None
        )
    if other is not None:
        raise ConfigError(
            f"--out {out}: --overwrite would remove {other.relative_to(out)}, which artist did not "
            "write; choose another folder or move it away"
        )


def _is_experiment(marker: Path) -> bool:
    try:
        Experiment.model_validate_json(read_text(marker))
    except ValueError:
        return False
    return True


def _remove_runs(out: Path) -> None:
    """Remove an earlier sweep: its runs, its results and, at last, its mark. Other files stay.

    Raises:
        ConfigError: something there is not a sweep's; then nothing is removed.
    """
    _refuse_foreign(out)
    _remove_leftovers(out)
    for manifest in sorted((out / "runs").glob(f"*/{MANIFEST}")):
        doomed = partial_path(manifest.parent)
        manifest.parent.rename(doomed)  # no half a run, whatever happens now
        remove(doomed)
    for name in (RESULTS, RESULTS_PARQUET, EXPERIMENT):
        remove(out / name)


def _remove_leftovers(out: Path) -> None:
    """Remove what a killed sweep left half-written: its temporary files and `write_run`'s folders.

    Called under the lock only: no other sweep is writing, so nothing of it is in use, whichever
    machine wrote it.
    """
    for name in (EXPERIMENT, RESULTS, RESULTS_PARQUET):
        for partial in partials(out / name):
            remove(partial)
    folder = out / "runs"
    folder.mkdir(exist_ok=True)
    for scratch in folder.glob(".*"):
        if is_partial(scratch):
            remove(scratch)


def _summary(folder: Path) -> dict[str, Any]:
    """What `summary.json` of a run that is done holds.

    Raises:
        TraceError: the file is gone or was changed by somebody else: runs are written whole.
    """
    path = folder / SUMMARY
    try:
        summary = json.loads(read_text(path))
    except (ConfigError, ValueError, RecursionError):
        summary = None
    if not isinstance(summary, dict) or "wall_s" not in summary:
        raise TraceError(
            f"{path}: is missing or damaged; remove the folder {folder} and add --resume, to run "
            "it again"
        )
    return summary


def _check_unchanged(folder: Path) -> None:
    """Refuse a finished run of which a file is not as it was written.

    Raises:
        TraceError: names the file.
    """
    if (path := changed_file(folder)) is not None:
        raise TraceError(
            f"{path}: is not as the run wrote it; remove the folder {folder} and add --resume, to "
            "run it again"
        )


def _row(run: Run, folder: Path) -> Mapping[str, Any]:
    """A run's row: its point in the grid, then its summary without `wall_s`.

    A figure of the summary that is also a setting of the grid stands there once.
    """
    summary = _summary(folder)
    summary.pop("wall_s")
    point = {
        key: value if isinstance(value, int | float) else str(value) for key, value in run.point
    }
    return {"run": run.id, **point, **{k: v for k, v in summary.items() if k not in point}}
