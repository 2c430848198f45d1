"""Run an experiment: results appear run by run, whole, and survive any interruption.

A sweep's folder holds `runs/ID/`, one run directory each, and at the end `results.parquet`
and `results.csv`, one row per run. A run is done when its directory is there; that appears
by one rename. Killed at any moment, a sweep resumes with what is missing.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import shutil
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from artist.errors import ConfigError
from artist.experiments.experiment import Experiment, Run, runs
from artist.experiments.task import Outcome, Task, locally
from artist.io.reading import read_text
from artist.results.arrow_tables import arrow_table
from artist.results.run_directory import MANIFEST

EXPERIMENT = "experiment.json"
LOCK = ".lock"

Engine = Callable[[Sequence[Task], int | None], Generator[Outcome]]
"""Who runs the tasks, with how many workers: `locally`, or `remote.on_ray`."""


@dataclass(slots=True)
class SweepResult:
    """How the sweep ended."""

    total: int
    skipped: int
    done: int = 0
    failures: list[Outcome] = field(default_factory=list)


def sweep(
    experiment: Experiment,
    out: Path,
    command: Sequence[str],
    *,
    workers: int | None,
    resume: bool = False,
    on_done: Callable[[SweepResult], None] | None = None,
    engine: Engine = locally,
) -> SweepResult:
    """Run what is not done yet; a failing run does not stop the others.

    Raises:
        ConfigError: a bad grid, a folder of something else, or one that is in use.
    """
    cells = runs(experiment)
    try:
        with _claimed(experiment, out, resume):
            return _carry_on(cells, out, command, workers, on_done, engine)
    except OSError as cause:
        raise ConfigError(
            f"--out {out}: cannot be written ({cause.strerror or cause}); make room, or choose "
            "another folder"
        ) from cause


def _carry_on(
    cells: Sequence[Run],
    out: Path,
    command: Sequence[str],
    workers: int | None,
    on_done: Callable[[SweepResult], None] | None,
    engine: Engine,
) -> SweepResult:
    """Run the cells that have no directory yet, then write the rows of all."""
    folder = out / "runs"
    _sweep_up(folder)
    missing = [run for run in cells if not (folder / run.id / MANIFEST).is_file()]
    result = SweepResult(len(cells), len(cells) - len(missing))
    if on_done:
        on_done(result)
    tasks = [
        Task(run.id, run.scenario, folder / run.id, tuple(command), os.getpid()) for run in missing
    ]
    try:
        # Closed at once where we are interrupted, or the workers would go on to the end.
        with closing(engine(tasks, workers)) as outcomes:
            for outcome in outcomes:
                if outcome.error:
                    result.failures.append(outcome)
                else:
                    result.done += 1
                if on_done:
                    on_done(result)
    finally:
        _sweep_up(folder)
    failed = {outcome.id for outcome in result.failures}
    _write_results([run for run in cells if run.id not in failed], folder, out)
    return result


@contextmanager
def _claimed(experiment: Experiment, out: Path, resume: bool) -> Iterator[None]:
    """Have the folder to ourselves, as this experiment's; the system frees a killed sweep's."""
    import fcntl

    # Refused before anything is put there; what a sweep killed at its first breath left is ours.
    if out.exists() and not (out / EXPERIMENT).is_file() and _foreign(out):
        raise ConfigError(f"--out {out}: exists and holds no experiment; choose another folder")
    out.mkdir(parents=True, exist_ok=True)
    with (out / LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigError(f"--out {out}: another sweep is writing there; wait for it") from None
        _mark(experiment, out, resume)
        yield


def _foreign(out: Path) -> bool:
    """Whether there is anything in a folder that no sweep puts there first."""
    ours = (LOCK, _partial(out / EXPERIMENT).name)
    return not out.is_dir() or any(path.name not in ours for path in out.iterdir())


def _mark(experiment: Experiment, out: Path, resume: bool) -> None:
    """Write the experiment into the folder, or find it there."""
    text = experiment.model_dump_json(indent=2) + "\n"
    marker = out / EXPERIMENT
    if not marker.is_file():
        _write_whole(marker, text.encode())
    elif read_text(marker) != text:
        raise ConfigError(
            f"--out {out}: holds another experiment or version of it; choose another folder"
        )
    elif not resume:
        raise ConfigError(f"--out {out}: holds this experiment already; add --resume to go on")


def _sweep_up(folder: Path) -> None:
    """Remove what a killed sweep left half-written: the scratch folders of `write_run`."""
    folder.mkdir(exist_ok=True)
    for scratch in folder.glob(".*"):
        shutil.rmtree(scratch, ignore_errors=True)


def _write_results(done: Sequence[Run], folder: Path, out: Path) -> None:
    """One row per run: its point in the grid, then its summary (without `wall_s`)."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [_row(run, folder / run.id) for run in done]
    columns = list(dict.fromkeys(name for row in rows for name in row))
    table = {name: [row.get(name) for row in rows] for name in columns}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([row.get(name) for name in columns] for row in rows)
    _write_whole(out / "results.csv", text.getvalue().encode())
    sink = pa.BufferOutputStream()
    pq.write_table(arrow_table(table), sink)
    _write_whole(out / "results.parquet", sink.getvalue().to_pybytes())


def _row(run: Run, folder: Path) -> Mapping[str, Any]:
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    summary.pop("wall_s")
    point = {
        key: value if isinstance(value, int | float) else str(value) for key, value in run.point
    }
    return {"run": run.id, **point, **{k: v for k, v in summary.items() if k not in point}}


def _write_whole(path: Path, data: bytes) -> None:
    partial = _partial(path)
    try:
        partial.write_bytes(data)
        partial.replace(path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            partial.unlink()


def _partial(path: Path) -> Path:
    return path.with_name(f".{path.name}.partial")
