"""artist's own formats: native, simple and sensetime. They state everything, nothing is filled in.

`OWN_FORMATS` has one row for each: its columns, and the function that turns them into the
fields of jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from artist.errors import TraceError, nearest
from artist.trace.native.table import HINT_PREFIX, MAX_GPUS, Table

UNKNOWN_MODEL = "unknown"


class Work(NamedTuple):
    """The fields of a job that every own format derives in its own way, column by column."""

    arrival_s: npt.NDArray[np.float64]
    gpus: npt.NDArray[np.int64]
    iterations: npt.NDArray[np.int64]
    compute_s: npt.NDArray[np.float64]
    models: list[str]
    users: list[str]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OwnFormat:
    """One own format. `closed` refuses columns that are neither required nor optional."""

    id: str
    title: str
    required: tuple[str, ...]
    optional: tuple[str, ...]
    read: Callable[[Table], Work]
    closed: bool = True

    def check(self, table: Table) -> None:
        """Refuse a table that lacks a required column or has an unknown one.

        Raises:
            TraceError: names the column, and a known name that is close to it.
        """
        known = {*self.required, *self.optional}
        extra = [n for n in table.columns if n not in known and not n.startswith(HINT_PREFIX)]
        where = table.place(0) if not self.closed and len(table) else f"{table.path}: header"
        check_columns(table, self.id, self.required, where, extra)
        if self.closed and extra:
            raise TraceError(
                f"{where}: unknown column {extra[0]!r}{_suggestion(extra[0], known)}; "
                f"rename it to {HINT_PREFIX}* to hand it to policies, or remove it"
            )


def check_columns(
    table: Table, format_: str, required: tuple[str, ...], where: str, extra: list[str]
) -> None:
    """Refuse a table that lacks a required column of `format_`.

    `extra` are the columns that the format does not know: one of them may be a misspelling.

    Raises:
        TraceError: names the missing column, and the one of `extra` that is close to it.
    """
    missing = [name for name in required if name not in table.columns]
    if missing:
        raise TraceError(
            f"{where}: column {missing[0]!r} of the {format_} format is missing"
            f"{_suggestion(missing[0], extra)}; found {', '.join(table.columns)[:200]!r}; "
            f"give {', '.join(required)}"
        )


def _suggestion(name: str, known: Iterable[str]) -> str:
    """`: did you mean 'gpus'?`, or nothing where no known name is close."""
    near = nearest(name, known)
    return f": did you mean {near!r}?" if near else ""


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
    """The duration is divided by the given iterations, else into steps of at most a second."""
    duration_s = table.seconds("duration", positive=True)
    whole_s = np.maximum(1, np.ceil(duration_s)).astype(np.int64)
    iterations = table.counts_or("iterations", whole_s.tolist())
    warnings = []
    if "iterations" not in table.columns:
        warnings.append(f"{len(table)} jobs without iterations run in steps of at most 1 s")
    models = table.texts_or("model", UNKNOWN_MODEL)
    if unnamed := models.count(UNKNOWN_MODEL):
        warnings.append(f"{unnamed} jobs without a model need --backend none")
    # Philly tables name no user: there the virtual cluster is the tenant.
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
    """The file counts iterations for one GPU: a gang of g GPUs runs a g-th of them, rounded up."""
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
        iterations=-(-total // gpus),  # division rounded up
        compute_s=table.seconds("time_per_iteration", positive=True),
        models=table.texts("model"),
        users=table.texts_or("user", ""),
        warnings=warnings if uneven else (),
    )


# Every own format may have these; `assemble` reads them.
_COMMON = ("gpus_min", "gpus_max", "restart_s")

OWN_FORMATS = (
    OwnFormat(
        id="native",
        title="artist's own columns (CSV, Parquet)",
        required=("job_id", "arrival_s", "gpus", "model", "iterations", "compute_s"),
        optional=("user", *_COMMON),
        read=_native,
    ),
    OwnFormat(
        id="simple",
        title="jobs with a duration (CSV, Parquet)",
        required=("job_id", "submit_time", "num_gpus", "duration"),
        optional=("model", "iterations", "user", "vc", *_COMMON),
        read=_simple,
    ),
    OwnFormat(
        id="sensetime",
        title="the workloads published with Dally's simulator (JSON)",
        required=("job_id", "total_iterations", "time_per_iteration", "max_parallelism", "model"),
        optional=("arrival_time", "start_time", "user", *_COMMON),
        read=_sensetime,
        closed=False,  # it also has descriptive columns (gmem_util, dayofweek, ...): not read
    ),
)
