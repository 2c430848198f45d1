"""Writing jobs in artist's own formats: native as CSV or Parquet, simple as CSV.

`read_trace` reads native files back exactly: every float keeps its last bit.
"""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from artist.errors import ConfigError, shortened
from artist.io.writing import whole_file
from artist.trace.native.trace import content_digest
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

# The type of each of `COLUMNS`.
_TYPES = (str, float, int, str, int, float, str, int, int, float)

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

WHEN_GIVEN = (
    "checkpoint_interval_s", "checkpoint_cost_s", "tenant", "priority", "tables", "gpu_kinds",
)  # fmt: skip
"""Columns that are written only if a job has a value in them; after the others, before hints."""

_TYPES_WHEN_GIVEN = {
    "checkpoint_interval_s": float,
    "checkpoint_cost_s": float,
    "tenant": str,
    "priority": int,
    "tables": str,
    "gpu_kinds": str,
}

_ROWS_PER_GROUP = 131_072


def write_csv(jobs: Iterable[Job], path: Path) -> None:
    """Write jobs as native CSV, one after another, so that any number needs little memory.

    The file appears whole or not at all. Floats are written so that they read back to the same
    bits. All jobs must have the hints of the first. Jobs that come one by one are not looked at
    twice: the first of them says which columns of `WHEN_GIVEN` there are.

    Raises:
        ConfigError: the file cannot be written there, or a job would lose its tenant or priority.
    """
    _write_rows(_native_rows(jobs), path)


def write_simple(jobs: Iterable[Job], path: Path) -> None:
    """Write jobs as simple CSV: a duration instead of `compute_s`; otherwise as `write_csv`.

    Raises:
        ConfigError: the file cannot be written there.
    """
    _write_rows(_simple_rows(jobs), path)


def write_parquet(jobs: Iterable[Job], path: Path) -> None:
    """Write jobs as native Parquet, one group of rows at a time; otherwise as `write_csv`.

    Raises:
        ConfigError: the file cannot be written there.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = _native_rows(jobs)
    names = [str(name) for name in next(rows, list(COLUMNS))]
    first = list(itertools.islice(rows, _ROWS_PER_GROUP))
    given = [_TYPES_WHEN_GIVEN[x] for x in names[len(COLUMNS) :] if x in _TYPES_WHEN_GIVEN]
    known = (*_TYPES, *given)
    hints = (_hint_type([row[i] for row in first]) for i in range(len(known), len(names)))
    types = [{float: pa.float64(), int: pa.int64(), str: pa.string()}[type_] for type_ in known]
    schema = pa.schema(list(zip(names, [*types, *hints], strict=True)))
    rest = iter(lambda: list(itertools.islice(rows, _ROWS_PER_GROUP)), [])
    with whole_file(path) as partial, pq.ParquetWriter(partial, schema) as writer:
        for block in itertools.chain([first], rest):
            cells = list(zip(*block, strict=True)) or [()] * len(names)
            writer.write_table(pa.table([list(x) for x in cells], schema=schema))


def _hint_type(cells: Sequence[object]) -> Any:
    """The Arrow type of a hint, judged by its cells in the first group of rows.

    It is a number where all cells are numbers of one type, otherwise text.
    """
    import pyarrow as pa

    types = {type(cell) for cell in cells}
    return {int: pa.int64(), float: pa.float64()}.get(
        types.pop() if len(types) == 1 else str, pa.string()
    )


def _write_rows(rows: Iterable[Sequence[object]], path: Path) -> None:
    with whole_file(path) as partial, partial.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def digest(jobs: Iterable[Job]) -> str:
    """The digest of the native CSV file that `write_csv` would write."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(_native_rows(jobs))
    return content_digest(text.getvalue())


def _native_rows(jobs: Iterable[Job]) -> Iterator[list[object]]:
    """The header, then a row per job. Nothing at all if there are no jobs."""
    hints: list[str] | None = None
    given: list[str] = []
    for job in jobs:
        if hints is None:
            hints = list(job.hints)
            # All jobs that are at hand; of an iterator, only this one.
            known = jobs if isinstance(jobs, Sequence) else [job]
            given = [x for x in WHEN_GIVEN if any(_cell(y, x) is not None for y in known)]
            yield [*COLUMNS, *given, *hints]
        _refuse_loss(job, given)
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
            *(_cell(job, name) for name in given),
            *(job.hints[name] for name in hints),
        ]


def _cell(job: Job, name: str) -> object:
    """What the file has of a field of `WHEN_GIVEN`: names are one text. None if there is none."""
    value = getattr(job, name)
    return " ".join(value) or None if isinstance(value, tuple) else value


def _refuse_loss(job: Job, given: Sequence[str]) -> None:
    """Refuse a value for which the header, already written, has no column."""
    for name in WHEN_GIVEN:
        if name not in given and (cell := _cell(job, name)) is not None:
            raise ConfigError(
                f"job {job.id!r} has a {name} ({shortened(cell)}) and the first job "
                f"of this trace has none; give the first job a {name} or hand over a list of jobs"
            )


def _simple_rows(jobs: Iterable[Job]) -> Iterator[list[object]]:
    """The native rows in the order of the simple columns, with a duration for `compute_s`."""
    rows = _native_rows(jobs)
    for header in itertools.islice(rows, 1):
        yield [*SIMPLE_COLUMNS, *header[len(COLUMNS) :]]
    for row in rows:
        job_id, arrival_s, gpus, model, iterations, compute_s, *rest = row
        run_s = iterations * compute_s  # type: ignore[operator]
        yield [job_id, arrival_s, gpus, run_s, model, iterations, *rest]
