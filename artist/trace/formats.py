"""Readers of job traces: artist's own schema and two that others use.

| format | fields |
|---|---|
| native (CSV, Parquet) | job_id, arrival_s, gpus, model, iterations, compute_s; user, gpus_min, gpus_max, restart_s, hint_* |
| simple (CSV, Parquet) | job_id, submit_time, num_gpus, duration; model, iterations, user or vc, hint_* |
| SenseTime (JSON) | job_id, total_iterations, time_per_iteration, max_parallelism, model, arrival_time or start_time; user |

Those after the semicolon are optional. Times are seconds. A reader refuses what
it cannot explain and keeps a model's name as written; `base.check_models` holds
it against the catalogue.
"""  # noqa: E501  (a table row is one line)

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from artist.errors import TraceError
from artist.trace.base import Trace
from artist.trace.sources import read_table
from artist.trace.table import HINT_PREFIX, Table, did_you_mean
from artist.units import MAX_TIME_S, TICKS_PER_S
from artist.workload.files import read_bytes
from artist.workload.job import Job

UNKNOWN_MODEL = "unknown"


class _Work(NamedTuple):
    """What a schema makes of its columns: the fields of a job that differ between schemas."""

    arrival_s: npt.NDArray[np.float64]
    gpus: npt.NDArray[np.int64]
    iterations: npt.NDArray[np.int64]
    compute_s: npt.NDArray[np.float64]
    models: list[str]
    users: list[str]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Schema:
    """Columns of one format. `closed` refuses columns that are not listed."""

    id: str
    required: tuple[str, ...]
    optional: tuple[str, ...]
    read: Callable[[Table], _Work]
    closed: bool = True


def read_trace(path: Path) -> Trace:
    """Read a trace; its format shows in its content.

    Raises:
        TraceError: the file cannot be read or a job in it is malformed. One
            sentence names file, line (row in Parquet), field, value and remedy.
    """
    data = read_bytes(path)
    table = read_table(path, data)
    schema = _schema(table)
    if not len(table):
        raise TraceError(f"{path}: the trace has no jobs; give at least one row")
    work = schema.read(table)
    jobs = _jobs(table, work)
    order = np.argsort(work.arrival_s, kind="stable").tolist()
    return Trace(
        name=path.stem,
        format=schema.id,
        jobs=tuple(jobs[i] for i in order),
        digest=hashlib.sha256(data).hexdigest(),
        numbers=tuple(table.numbers[i] for i in order),
        unit=table.unit,
        path=path,
        warnings=work.warnings,
    )


def _schema(table: Table) -> Schema:
    """The schema that explains the columns best; complains about what it does not."""
    names = set(table.columns)
    schema = max(_SCHEMAS, key=lambda x: len(names.intersection(x.required)))
    missing = [name for name in schema.required if name not in names]
    known = {*schema.required, *schema.optional}
    extra = [n for n in table.columns if n not in known and not n.startswith(HINT_PREFIX)]
    where = table.place(0) if not schema.closed else f"{table.path}: header"
    if missing:
        raise TraceError(
            f"{where}: column {missing[0]!r} of the {schema.id} format is missing"
            f"{did_you_mean(missing[0], extra)}; found {', '.join(table.columns)[:200]!r}; "
            f"give {', '.join(schema.required)}"
        )
    if schema.closed and extra:
        raise TraceError(
            f"{where}: unknown column {extra[0]!r}{did_you_mean(extra[0], known)}; "
            f"rename it to {HINT_PREFIX}* to hand it to policies, or remove it"
        )
    return schema


def _jobs(table: Table, work: _Work) -> list[Job]:
    ids = _unique_ids(table)
    _check_lengths(table, work)
    gpus = work.gpus.tolist()
    gpus_min = table.counts_or("gpus_min", gpus)
    table.require(gpus_min <= work.gpus, "gpus_min", "at most the job's gpus")
    gpus_max = table.counts_or("gpus_max", gpus)
    table.require(gpus_max >= work.gpus, "gpus_max", "at least the job's gpus")
    columns: tuple[Iterable[Any], ...] = (
        ids,
        work.arrival_s.tolist(),
        gpus,
        work.models,
        work.iterations.tolist(),
        work.compute_s.tolist(),
        work.users,
        gpus_min.tolist(),
        gpus_max.tolist(),
        table.seconds_or("restart_s", 0.0).tolist(),
        table.hints(),
    )
    return list(map(Job, *columns))  # in the order of Job's fields


def _check_lengths(table: Table, work: _Work) -> None:
    ideal_s = work.iterations * work.compute_s
    good = (ideal_s >= 1 / TICKS_PER_S) & (ideal_s <= MAX_TIME_S)
    if not good.all():
        index = int(np.argmin(good))
        raise TraceError(
            f"{table.place(index)}: {work.iterations[index]} iterations of "
            f"{work.compute_s[index]} s make a job of {ideal_s[index]:.3g} s, expected 1e-09 "
            f"to {MAX_TIME_S:.0e} s; correct this row"
        )


def _unique_ids(table: Table) -> list[str]:
    ids = table.texts("job_id")
    if len(set(ids)) < len(ids):
        first: dict[str, int] = {}
        for index, job_id in enumerate(ids):
            if first.setdefault(job_id, index) != index:
                taken = f"a new id (it was used at {table.place(first[job_id])})"
                raise table.error(index, "job_id", taken)
    return ids


def _native(table: Table) -> _Work:
    return _Work(
        arrival_s=table.seconds("arrival_s"),
        gpus=table.counts("gpus"),
        iterations=table.counts("iterations"),
        compute_s=table.seconds("compute_s", positive=True),
        models=table.texts("model"),
        users=table.texts_or("user", ""),
    )


def _simple(table: Table) -> _Work:
    """A duration, cut into the given iterations or into steps of at most a second."""
    duration_s = table.seconds("duration", positive=True)
    whole_s = np.maximum(1, np.ceil(duration_s)).astype(np.int64)
    iterations = table.counts_or("iterations", whole_s.tolist())
    warnings = []
    if "iterations" not in table.columns:
        warnings.append(f"{len(table)} jobs without iterations run in steps of at most 1 s")
    models = table.texts_or("model", UNKNOWN_MODEL)
    if unnamed := models.count(UNKNOWN_MODEL):
        warnings.append(f"{unnamed} jobs without a model need --backend none")
    # The virtual cluster is the tenant where no user is named (Philly).
    users = table.texts_or("user" if "user" in table.columns else "vc", "")
    return _Work(
        arrival_s=table.seconds("submit_time"),
        gpus=table.counts("num_gpus"),
        iterations=iterations,
        compute_s=duration_s / iterations,
        models=models,
        users=users,
        warnings=tuple(warnings),
    )


def _sensetime(table: Table) -> _Work:
    """Iterations are counted for one GPU: a gang of g shares them, rounded up."""
    gpus = table.counts("max_parallelism")
    total = table.counts("total_iterations")
    arrival = next((x for x in ("arrival_time", "start_time") if x in table.columns), None)
    if arrival is None:
        raise TraceError(
            f"{table.place(0)}: column 'arrival_time' of the sensetime format is missing; "
            "give arrival_time or start_time, in seconds"
        )
    uneven = int(np.count_nonzero(total % gpus))
    warnings = (f"{uneven} jobs had their iterations rounded up to a multiple of their GPUs",)
    return _Work(
        arrival_s=table.seconds(arrival),
        gpus=gpus,
        iterations=-(-total // gpus),
        compute_s=table.seconds("time_per_iteration", positive=True),
        models=table.texts("model"),
        users=table.texts_or("user", ""),
        warnings=warnings if uneven else (),
    )


_COMMON = ("gpus_min", "gpus_max", "restart_s")

_SCHEMAS = (
    Schema(
        id="native",
        required=("job_id", "arrival_s", "gpus", "model", "iterations", "compute_s"),
        optional=("user", *_COMMON),
        read=_native,
    ),
    Schema(
        id="simple",
        required=("job_id", "submit_time", "num_gpus", "duration"),
        optional=("model", "iterations", "user", "vc", *_COMMON),
        read=_simple,
    ),
    Schema(
        id="sensetime",
        required=("job_id", "total_iterations", "time_per_iteration", "max_parallelism", "model"),
        optional=("arrival_time", "start_time", "user", *_COMMON),
        read=_sensetime,
        closed=False,  # its descriptive fields (gmem_util, dayofweek, ...) do not concern us
    ),
)
