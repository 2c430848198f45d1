"""Writing traces in the native schema, which `formats.read_trace` reads back exactly."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

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


_KINDS = (str, float, int, str, int, float, str, int, int, float)

SIMPLE_COLUMNS = (
    "job_id",
    "submit_time",
    "num_gpus",
    "duration",
    "model",
    "iterations",
    "user",
    "gpus_min",
    "gpus_max",
    "restart_s",
)

_ROWS_PER_GROUP = 131_072


def write_csv(jobs: Iterable[Job], path: Path) -> None:
    """Write jobs in the native schema one after another, so any number needs little memory.

    The file appears whole or not at all. Floats are written so that they read
    back to the same bits. All jobs have the hints of the first.

    Raises:
        ConfigError: the file cannot be written there.
    """
    _write_rows(_lines(jobs), path)


def write_simple(jobs: Iterable[Job], path: Path) -> None:
    """As `write_csv` in the simple schema: a duration instead of the length of a step.

    Raises:
        ConfigError: the file cannot be written there.
    """
    _write_rows(_simple_lines(jobs), path)


def write_text(lines: Iterable[str], path: Path) -> None:
    """Write lines of text, whole or not at all.

    Raises:
        ConfigError: the file cannot be written there.
    """
    with _whole(path) as partial, partial.open("w", encoding="utf-8", newline="") as file:
        file.writelines(f"{line}\n" for line in lines)


def write_parquet(jobs: Iterable[Job], path: Path) -> None:
    """Write jobs in the native schema as Parquet, block by block; otherwise as `write_csv`.

    Raises:
        ConfigError: the file cannot be written there.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = _lines(jobs)
    names = [str(name) for name in next(rows, list(COLUMNS))]
    first = list(itertools.islice(rows, _ROWS_PER_GROUP))
    hints = (_hint_type([row[i] for row in first]) for i in range(len(COLUMNS), len(names)))
    kinds = [{float: pa.float64(), int: pa.int64(), str: pa.string()}[kind] for kind in _KINDS]
    schema = pa.schema(list(zip(names, [*kinds, *hints], strict=True)))
    rest = iter(lambda: list(itertools.islice(rows, _ROWS_PER_GROUP)), [])
    with _whole(path) as partial, pq.ParquetWriter(partial, schema) as writer:
        for block in itertools.chain([first], rest):
            cells = list(zip(*block, strict=True)) or [()] * len(names)
            writer.write_table(pa.table([list(x) for x in cells], schema=schema))


def _hint_type(cells: Sequence[object]) -> Any:
    """The Arrow type of the first block's hints: text, unless all are numbers."""
    import pyarrow as pa

    kinds = {type(cell) for cell in cells}
    return {int: pa.int64(), float: pa.float64()}.get(
        kinds.pop() if len(kinds) == 1 else str, pa.string()
    )


def _write_rows(rows: Iterable[Sequence[object]], path: Path) -> None:
    with _whole(path) as partial, partial.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


@contextlib.contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """A name to write to, which becomes `path` when all has gone well."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        try:
            yield partial
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


def _simple_lines(jobs: Iterable[Job]) -> Iterator[list[object]]:
    """The native rows with a run time in the place of the step."""
    rows = _lines(jobs)
    for header in itertools.islice(rows, 1):
        yield [*SIMPLE_COLUMNS, *header[len(COLUMNS) :]]
    for row in rows:
        job_id, arrival_s, gpus, model, iterations, compute_s, *rest = row
        run_s = iterations * compute_s  # type: ignore[operator]
        yield [job_id, arrival_s, gpus, run_s, model, iterations, *rest]
