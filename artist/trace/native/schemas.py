"""The columns of the three formats that artist reads without filling anything in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from artist.errors import TraceError
from artist.trace.native.table import HINT_PREFIX, MAX_GPUS, Table, did_you_mean

UNKNOWN_MODEL = "unknown"


class Work(NamedTuple):
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
    title: str
    required: tuple[str, ...]
    optional: tuple[str, ...]
    read: Callable[[Table], Work]
    closed: bool = True

    def check(self, table: Table) -> None:
        """Refuse a table that lacks a column, or has one that means nothing here.

        Raises:
            TraceError: names the column, and a likely misspelling of it.
        """
        known = {*self.required, *self.optional}
        extra = [n for n in table.columns if n not in known and not n.startswith(HINT_PREFIX)]
        where = table.place(0) if not self.closed and len(table) else f"{table.path}: header"
        check_columns(table, self.id, self.required, where, extra)
        if self.closed and extra:
            raise TraceError(
                f"{where}: unknown column {extra[0]!r}{did_you_mean(extra[0], known)}; "
                f"rename it to {HINT_PREFIX}* to hand it to policies, or remove it"
            )


def check_columns(
    table: Table, format_: str, required: tuple[str, ...], where: str, extra: list[str]
) -> None:
    """Refuse a table that lacks a required column.

    Raises:
        TraceError: names the column, and the one among `extra` that looks like it.
    """
    missing = [name for name in required if name not in table.columns]
    if missing:
        raise TraceError(
            f"{where}: column {missing[0]!r} of the {format_} format is missing"
            f"{did_you_mean(missing[0], extra)}; found {', '.join(table.columns)[:200]!r}; "
            f"give {', '.join(required)}"
        )


def _native(table: Table) -> Work:
    return Work(
        arrival_s=table.seconds("arrival_s"),
        gpus=table.counts("gpus", MAX_GPUS),
        iterations=table.counts("iterations"),
        compute_s=table.seconds("compute_s", positive=True),
        models=table.texts("model"),
        users=table.texts_or("user", ""),
    )


def _simple(table: Table) -> Work:
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
    return Work(
        arrival_s=table.seconds("submit_time"),
        gpus=table.counts("num_gpus", MAX_GPUS),
        iterations=iterations,
        compute_s=duration_s / iterations,
        models=models,
        users=users,
        warnings=tuple(warnings),
    )


def _sensetime(table: Table) -> Work:
    """Iterations are counted for one GPU: a gang of g shares them, rounded up."""
    gpus = table.counts("max_parallelism", MAX_GPUS)
    total = table.counts("total_iterations")
    arrival = next((x for x in ("arrival_time", "start_time") if x in table.columns), None)
    if arrival is None:
        raise TraceError(
            f"{table.place(0)}: column 'arrival_time' of the sensetime format is missing; "
            "give arrival_time or start_time, in seconds"
        )
    uneven = int(np.count_nonzero(total % gpus))
    warnings = (f"{uneven} jobs had their iterations rounded up to a multiple of their GPUs",)
    return Work(
        arrival_s=table.seconds(arrival),
        gpus=gpus,
        iterations=-(-total // gpus),
        compute_s=table.seconds("time_per_iteration", positive=True),
        models=table.texts("model"),
        users=table.texts_or("user", ""),
        warnings=warnings if uneven else (),
    )


_COMMON = ("gpus_min", "gpus_max", "restart_s")

SCHEMAS = (
    Schema(
        id="native",
        title="artist's own columns (CSV, Parquet)",
        required=("job_id", "arrival_s", "gpus", "model", "iterations", "compute_s"),
        optional=("user", *_COMMON),
        read=_native,
    ),
    Schema(
        id="simple",
        title="jobs with a duration (CSV, Parquet)",
        required=("job_id", "submit_time", "num_gpus", "duration"),
        optional=("model", "iterations", "user", "vc", *_COMMON),
        read=_simple,
    ),
    Schema(
        id="sensetime",
        title="the workloads published with Dally's simulator (JSON)",
        required=("job_id", "total_iterations", "time_per_iteration", "max_parallelism", "model"),
        optional=("arrival_time", "start_time", "user", *_COMMON),
        read=_sensetime,
        closed=False,  # its descriptive fields (gmem_util, dayofweek, ...) do not concern us
    ),
)
