"""Writing traces in the native schema, which `formats.read_trace` reads back exactly."""

from __future__ import annotations

import csv
import hashlib
import io
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from artist.errors import ConfigError
from artist.workload.job import Job

COLUMNS = (
    "job_id",
    "arrival_s",
    "gpus",
    "model",
    "iterations",
    "compute_s",
    "user",
    "gpus_min",
    "gpus_max",
    "restart_s",
)


def write_csv(jobs: Iterable[Job], path: Path) -> None:
    """Write jobs one after another, so an iterator of any length needs little memory.

    The file appears whole or not at all. Floats are written so that they read
    back to the same bits. All jobs have the hints of the first.

    Raises:
        ConfigError: the file cannot be written there.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        try:
            with partial.open("w", encoding="utf-8", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows(_lines(jobs))
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot be written ({error.strerror}); give a path in a writable folder"
        ) from error


def digest(jobs: Iterable[Job]) -> str:
    """SHA-256 of the jobs' native CSV form."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(_lines(jobs))
    return hashlib.sha256(text.getvalue().encode()).hexdigest()


def _lines(jobs: Iterable[Job]) -> Iterator[list[object]]:
    """The header, then a row per job."""
    hints: list[str] | None = None
    for job in jobs:
        if hints is None:
            hints = list(job.hints)
            yield [*COLUMNS, *hints]
        yield [
            job.id,
            job.arrival_s,
            job.gpus,
            job.model,
            job.iterations,
            job.compute_s,
            job.user,
            job.gpus_min,
            job.gpus_max,
            job.restart_s,
            *(job.hints[name] for name in hints),
        ]
