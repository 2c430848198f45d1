"""A folder of finished runs. They survive any interruption, and a later command can continue.

    experiment.json                   the experiment that the folder belongs to
    runs/ID/                          one run directory per run
    results.csv, results.parquet      one row per run, written at the end
    comparison.json                   of comparisons: what `--format json` prints
    decides.json                      of comparisons in several worlds: a figure of the report

A run is done if its directory exists, and the directory appears by one rename. So if a command is
killed, the next one makes the missing runs. Sweeps and comparisons use such folders.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from artist.errors import ConfigError, TraceError
from artist.experiments.experiment import Experiment
from artist.io.partials import is_partial, partial_path, partials, remove
from artist.io.reading import read_text
from artist.io.writing import special_kind, write_whole
from artist.results.run_directory import MANIFEST, RUN_DIRECTORY, SUMMARY, changed_file

EXPERIMENT = "experiment.json"
RESULTS = "results.csv"
RESULTS_PARQUET = "results.parquet"
COMPARISON = "comparison.json"
DECIDES = "decides.json"
WRITTEN = (RESULTS, RESULTS_PARQUET, COMPARISON, DECIDES)
"""Files that a command writes next to the runs at its end."""

LOCK = ".lock"


@contextmanager
def claimed(experiment: Experiment, out: Path, resume: bool, overwrite: bool) -> Iterator[None]:
    """Lock the folder for these runs and mark it as this experiment's.

    The operating system releases the lock when the process ends, also when it is killed.

    Raises:
        ConfigError: the folder holds something else, or runs that `resume` or `overwrite` does not
            allow; it is in use, or cannot be written, now or by what runs meanwhile.
    """
    if resume and overwrite:
        raise ConfigError("--resume keeps the runs and --overwrite removes them: give only one")
    try:
        with _locked(experiment, out, resume, overwrite):
            yield
    except OSError as cause:
        raise ConfigError(
            f"--out {out}: cannot be written ({cause.strerror or cause}); make room, or choose "
            "another folder"
        ) from cause


@contextmanager
def _locked(experiment: Experiment, out: Path, resume: bool, overwrite: bool) -> Iterator[None]:
    """Hold a sweep's folder, as no two may write there.

    Raises:
        ConfigError: the folder belongs to something else, or another sweep holds it.
    """

    import fcntl

    # Refuse before anything is written there.
    if kind := special_kind(out):
        raise ConfigError(f"--out {out}: is {kind}; give the name of a folder")
    if out.exists() and not (out / EXPERIMENT).is_file() and _holds_other_files(out):
        raise ConfigError(f"--out {out}: exists and holds no experiment; choose another folder")
    if overwrite:
        _refuse_foreign(out)
    if not _has_runs(out) and (out / EXPERIMENT).is_file() and not _is_experiment(out / EXPERIMENT):
        raise ConfigError(
            f"--out {out}: artist did not write the {EXPERIMENT} there; choose another folder"
        )
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


def _has_runs(out: Path) -> bool:
    return any((out / "runs").glob(f"*/{MANIFEST}"))


def _mark(experiment: Experiment, out: Path, resume: bool) -> None:
    """Write the experiment into the folder, or compare it with the one that is there.

    An experiment without a finished run, as after a typing mistake, does not block another one.
    """
    text = experiment.model_dump_json(indent=2) + "\n"
    marker = out / EXPERIMENT
    if not marker.is_file() or not _has_runs(out):
        write_whole(marker, text)
        return
    former = read_text(marker)
    if former == text and not resume:
        raise ConfigError(
            f"--out {out}: holds this experiment already; add --resume to continue, or "
            "--overwrite to begin again"
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
    """Refuse to remove what no sweep wrote."""
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
    """Remove earlier runs, the results and, last, the marker. Other files stay.

    Raises:
        ConfigError: the folder holds something that is not a sweep's; then nothing is removed.
    """
    _refuse_foreign(out)
    remove_leftovers(out)
    for manifest in sorted((out / "runs").glob(f"*/{MANIFEST}")):
        doomed = partial_path(manifest.parent)
        manifest.parent.rename(doomed)  # so that an interruption leaves no incomplete run
        remove(doomed)
    for name in (*WRITTEN, EXPERIMENT):
        remove(out / name)


def remove_leftovers(out: Path) -> None:
    """Remove what a killed sweep left half-written: its temporary files and `write_run`'s folders.

    Call it only while the folder is locked: then no other sweep uses these files.
    """
    for name in (EXPERIMENT, *WRITTEN):
        for partial in partials(out / name):
            remove(partial)
    folder = out / "runs"
    folder.mkdir(exist_ok=True)
    for scratch in folder.glob(".*"):
        if is_partial(scratch):
            remove(scratch)


def run_summary(folder: Path) -> dict[str, Any]:
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


def check_unchanged(folder: Path) -> None:
    """Refuse a finished run if one of its files was changed.

    Raises:
        TraceError: names the file.
    """
    if (path := changed_file(folder)) is not None:
        raise TraceError(
            f"{path}: has changed since the run wrote it; remove the folder {folder} and add "
            "--resume, to "
            "run it again"
        )
