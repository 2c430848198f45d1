"""Writing traces: native as CSV or Parquet, simple as CSV, or SWF, with a report of what is lost.

`read_trace` reads native files back exactly: every float keeps its last bit.
"""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

from artist.errors import ConfigError, shortened
from artist.io.writing import whole_file, write_whole
from artist.registry import UnknownNameError
from artist.trace.native.trace import Trace, content_digest
from artist.trace.native.untimed import untimed
from artist.units import counted
from artist.workload.job import Job, is_ranged

_TYPES = {
    "job_id": str, "arrival_s": float, "gpus": int, "model": str, "iterations": int,
    "compute_s": float, "user": str, "gpus_min": int, "gpus_max": int, "restart_s": float,
}  # fmt: skip

COLUMNS = tuple(_TYPES)

_COMPUTE = COLUMNS.index("compute_s")

# A job's values in the order of these columns.
_values = attrgetter("id", *COLUMNS[1:])

SIMPLE_COLUMNS = (
    "job_id", "submit_time", "num_gpus", "duration", "model", "iterations", "user", "gpus_min",
    "gpus_max", "restart_s",
)  # fmt: skip

_TYPES_WHEN_GIVEN = {
    "checkpoint_interval_s": float,
    "checkpoint_cost_s": float,
    "tenant": str,
    "priority": int,
    "tables": str,
    "gpu_kinds": str,
    "cpu_cores": float,
    "memory_gib": float,
    "gpu_share": float,
    "gpu_memory_gib": float,
    "mig": str,
}

WHEN_GIVEN = tuple(_TYPES_WHEN_GIVEN)
"""Columns that are written only if a job has a value in them; after the others, before hints."""

_ROWS_PER_GROUP = 131_072

OUTPUTS = ("native", "simple", "swf")

_PARQUET = ".parquet"

_SWF_COMPLETED = 1

# Information that SWF cannot hold, and which jobs have it. The other formats lose nothing that
# matters: in `simple`, duration / iterations is `compute_s` except for rounding.
_SWF_LOSSES: dict[str, Callable[[Job], bool]] = {
    "ids (jobs are numbered)": lambda job: True,
    "names of models (numbered)": lambda job: True,
    "names of users (numbered)": lambda job: bool(job.user),
    "iterations and compute_s (their product is the run time)": lambda job: True,
    "gpus_min, gpus_max": is_ranged,
    "restart_s": lambda job: job.restart_s > 0,
    "times of checkpoints": lambda job: job.checkpoint_interval_s is not None,
    "tenant, priority": lambda job: job.tenant is not None or job.priority is not None,
    "tables": lambda job: bool(job.tables),
    "gpu_kinds": lambda job: bool(job.gpu_kinds),
    "cpu_cores, memory_gib": lambda job: bool(job.cpu_milli or job.memory_mib),
    "gpu_share": lambda job: job.gpu_share is not None,
    "gpu_memory_gib": lambda job: bool(job.gpu_memory_mib),
    "mig": lambda job: bool(job.mig),
    "hints": lambda job: bool(job.hints),
}


def output_format(path: Path, to: str | None) -> str:
    """The format to write: `to`, else SWF for a name that ends in `.swf`, else native.

    Raises:
        ConfigError: the format does not exist, or it has no Parquet form.
    """
    chosen = to or ("swf" if path.suffix == ".swf" else "native")
    if chosen not in OUTPUTS:
        raise UnknownNameError("output format", chosen, OUTPUTS, f"one of {', '.join(OUTPUTS)}")
    if path.suffix == _PARQUET and chosen != "native":
        raise ConfigError(f"{path}: {chosen} is written as text; give a name in .csv or .swf")
    return chosen


def write_trace(trace: Trace, path: Path, to: str | None = None) -> tuple[str, ...]:
    """Write a trace, whole or not at all, and return what was lost, with numbers of jobs.

    Raises:
        ConfigError: the format does not exist, or the file cannot be written there.
    """
    chosen = output_format(path, to)
    lacking = untimed(trace) if chosen != "native" else ()
    if lacking:
        raise ConfigError(
            f"{path}: job {trace.jobs[lacking[0]].id!r} states no compute_s, so nothing says how "
            f"long it runs, as {chosen} must; write native, or state compute_s in the trace"
        )
    if chosen == "native":
        write_native(trace.jobs, path)
    elif chosen == "simple":
        write_simple(trace.jobs, path)
    else:
        write_whole(path, "".join(f"{line}\n" for line in _swf_lines(trace.jobs)))
        counts = {loss: sum(map(has, trace.jobs)) for loss, has in _SWF_LOSSES.items()}
        return tuple(f"{loss}: {counted(count, 'job')}" for loss, count in counts.items() if count)
    return ()


def write_native(jobs: Iterable[Job], path: Path) -> None:
    """Write jobs as native Parquet if the name ends in `.parquet`, else as native CSV.

    Raises:
        ConfigError: the file cannot be written there.
    """
    write = write_parquet if path.suffix == _PARQUET else write_csv
    write(jobs, path)


def write_csv(jobs: Iterable[Job], path: Path) -> None:
    """Write jobs as native CSV, one after another, so that any number needs little memory.

    The file appears whole or not at all. Floats are written so that they read back to the same
    bits. All jobs must have the hints of the first. An iterator of jobs is read once, so its first
    job decides which columns of `WHEN_GIVEN` there are.

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
    known = (*_TYPES.values(), *given)
    hints = (_hint_type([row[i] for row in first]) for i in range(len(known), len(names)))
    types = [{float: pa.float64(), int: pa.int64(), str: pa.string()}[type_] for type_ in known]
    schema = pa.schema(list(zip(names, [*types, *hints], strict=True)))
    rest = iter(lambda: list(itertools.islice(rows, _ROWS_PER_GROUP)), [])
    with whole_file(path) as partial, pq.ParquetWriter(partial, schema) as writer:
        for block in itertools.chain([first], rest):
            cells = list(zip(*block, strict=True)) or [()] * len(names)
            writer.write_table(pa.table([list(x) for x in cells], schema=schema))


def _hint_type(cells: Sequence[object]) -> Any:
    """The Arrow type of a hint, from its cells in the first group of rows.

    It is a number if all cells are numbers of one type, otherwise text.
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
    """The header and a row per job; nothing if there are no jobs."""
    hints: list[str] | None = None
    given: list[str] = []
    for job in jobs:
        if hints is None:
            hints = list(job.hints)
            # An iterator can be read only once, so only its first job is known here.
            known = jobs if isinstance(jobs, Sequence) else [job]
            given = [x for x in WHEN_GIVEN if any(_cell(y, x) is not None for y in known)]
            yield [*COLUMNS, *given, *hints]
        _refuse_loss(job, given)
        values = list(_values(job))
        values[_COMPUTE] = job.compute_s or None  # 0: the catalogue's
        cells = [_cell(job, name) for name in given]
        yield [*values, *cells, *(job.hints[name] for name in hints)]


def _cell(job: Job, name: str) -> object:
    """A job's cell in a column of `WHEN_GIVEN`, with names as one text; None for an empty cell."""
    value = getattr(job, name)
    if isinstance(value, tuple):
        value = " ".join(value)
    return None if value == "" else value


def _refuse_loss(job: Job, given: Sequence[str]) -> None:
    """Refuse a value without a column in the header, which is already written."""
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


def _swf_lines(jobs: Iterable[Job]) -> Iterator[str]:
    """Jobs as lines of the Standard Workload Format, numbered from 1.

    Run times are iterations x compute time. Users and models become numbers, in the order in which
    they first appear.
    """
    yield "; Version: 2.2"
    yield "; Note: written by artist; a processor is a GPU, wait times are unknown"
    users: dict[str, int] = {}
    models: dict[str, int] = {}
    for number, job in enumerate(jobs, start=1):
        user = users.setdefault(job.user, len(users) + 1) if job.user else -1
        model = models.setdefault(job.model, len(models) + 1)
        yield (
            f"{number} {job.arrival_s!r} -1 {job.ideal_s!r} {job.gpus} -1 -1 {job.gpus} -1 -1 "
            f"{_SWF_COMPLETED} {user} -1 {model} -1 -1 -1 -1"
        )
