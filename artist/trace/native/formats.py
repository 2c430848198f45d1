"""artist's own formats: native, simple and sensetime. They are complete; nothing is filled in.

`OWN_FORMATS` has one row for each: its columns, and the function that turns them into the
fields of jobs.
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from artist.errors import TraceError, one_line, shortened
from artist.io.reading import as_float
from artist.trace.native.alike import alike, is_end, is_no_run_time, unit_in
from artist.trace.native.table import GPU_MEMORY, HINT_PREFIX, MAX_GPUS, MIG, SHARE, Table
from artist.trace.native.time_units import ARRIVALS, DATE, is_date
from artist.units import counted
from artist.workload.job import UNKNOWN_MODEL

# The columns of times above, for which a unit may be given.
TIMES = (
    *ARRIVALS, "duration", "compute_s", "restart_s", "checkpoint_interval_s", "checkpoint_cost_s",
)  # fmt: skip


class WorkFields(NamedTuple):
    """The fields of a job that every own format derives in its own way, column by column."""

    arrival_s: npt.NDArray[np.float64]
    gpus: npt.NDArray[np.int64]
    iterations: npt.NDArray[np.int64]
    compute_s: npt.NDArray[np.float64]
    models: list[str]
    users: list[str]
    warnings: tuple[str, ...] = ()
    steps: str = ""
    units: Mapping[str, str] = MappingProxyType({})
    """Column of times -> its form, if that is not a number of seconds."""


@dataclass(frozen=True, slots=True)
class OwnFormat:
    """One own format. If it is `closed`, other columns than those it knows are reported.

    A file may lack the column `derived`, unless another of its columns has a similar name.
    """

    id: str
    title: str
    required: tuple[str, ...]
    optional: tuple[str, ...]
    read: Callable[[Table], WorkFields]
    closed: bool = True
    derived: str = ""

    def needed(self, names: Collection[str]) -> tuple[str, ...]:
        """The required columns that a file with these columns must have."""
        if not self.derived or self.derived in names:
            return self.required
        others = [x for x in names if x not in self.required and x not in self.optional]
        if alike((self.derived, "duration"), others, spelled=True):
            return self.required
        return tuple(name for name in self.required if name != self.derived)

    def check_extra(self, table: Table) -> None:
        """Refuse a table that has a misspelt column of a closed format.

        Other unknown columns are left out, and a note names them.

        Raises:
            TraceError: names the column, and the known name that is close to it.
        """
        free = [name for name in (*self.required, *self.optional) if name not in table.columns]
        for name in table.columns if self.closed else ():
            if name in self.required or name in self.optional or name.startswith(HINT_PREFIX):
                continue
            near = misspelt(name, free)
            if near is not None:
                hint = HINT_PREFIX + re.sub(r"\W+", "_", name)[:40]
                raise TraceError(
                    f"{table.header_place()}: unknown column {shortened(name)}: did you mean "
                    f"{near!r}? write --columns {shlex.quote(f'{near}={name}')}, or hand it "
                    f"to policies with --columns {shlex.quote(f'{hint}={name}')}"
                )


def misspelt(name: str, known: Sequence[str]) -> str | None:
    """The known column that a name probably misspells; None if it is another word."""
    near = difflib.get_close_matches(name[:_LONGEST], known, n=1, cutoff=_MISSPELT)
    return near[0] if near else None


# A column that is at least this similar to a known one is taken as misspelt.
_MISSPELT = 0.8

# Compared letters: the time of a comparison grows with the product of the lengths.
_LONGEST = 60


def check_columns(
    table: Table, format_: str, required: tuple[str, ...], extra: list[str], *, named: bool
) -> None:
    """Refuse a table that lacks a required column of `format_`.

    `extra` are the columns that the format does not know; some may hold what is missing. `named`:
    whether the user named the format. Otherwise it is the one that comes closest.

    Raises:
        TraceError: names the missing columns, those that look alike, and what to type.
    """
    missing = [name for name in required if name not in table.columns]
    if not missing:
        return
    near = alike(missing, extra)
    # Optional in simple, but a network cannot be simulated without it.
    others = [name for name in extra if name not in near.values()]
    model = alike(["model"] * (format_ == "simple"), others, spelled=True)
    others = [name for name in others if name not in model.values()]
    near |= last_left(table, missing, near, others)
    names = ", ".join(map(repr, missing))
    asks = f"format {format_}" if named else f"no format fits, and the closest, {format_},"
    asks += f" needs column{'' if len(missing) == 1 else 's'} {names}"
    guesses = ", ".join(map(shortened, near.values()))
    header = one_line(", ".join(table.names), most=200)
    raise TraceError(
        f"{table.header_place()}: {asks}"
        f"{f': did you mean {guesses}?' if near else ''}; the file has {header!r}; "
        f"{_what_to_type(table, format_, [*missing, *model], {**near, **model})}"
    )


def _what_to_type(
    table: Table, format_: str, missing: Sequence[str], near: Mapping[str, str]
) -> str:
    """The flags with which the file could be read; `COLUMN` is in place of unknown names."""
    pairs = ",".join(f"{name}={near.get(name, 'COLUMN')}" for name in missing)
    units = {
        name: unit
        for name, one in near.items()
        if (unit := unit_of(table, name, one, dates=format_ in _MAPPED))
    }
    flags = f"--columns {shlex.quote(pairs)}"
    if units:
        flags += f" --units {units_text(units)}"
    if format_ not in _MAPPED:
        path = shlex.quote(str(table.path))
        flags = f"artist trace columns {path} --from {format_} {flags}"
    proposal = f"take a proposal with artist trace columns {shlex.quote(str(table.path))}, or "
    return f"{proposal if near else ''}name {'them' if len(missing) > 1 else 'it'} with {flags}"


def last_left(
    table: Table, missing: Sequence[str], near: Mapping[str, str], others: Sequence[str]
) -> dict[str, str]:
    """Pairs the only missing time or count with the only column left, if that holds numbers.

    The only column of lengths such as 21:44:38 is the duration even if other columns are left, and
    the only column of dates that are no ends is the arrival. A column whose name means a wait, a
    moment or a limit is not a run time.
    """
    open_ = [name for name in missing if name not in near]
    runs = [name for name in others if not is_no_run_time(name)]
    lengths = [name for name in runs if table.has_clocks(name, all_=True)]
    dates = [name for name in others if not is_end(name) and _has_dates(table, name)]
    found = {"duration": lengths[0]} if "duration" in open_ and len(lengths) == 1 else {}
    if len(dates) == 1:
        found |= dict.fromkeys((name for name in open_ if name in ARRIVALS), dates[0])
    if found:
        return found
    if len(open_) != 1 or len(others) != 1 or open_[0] in _TEXTS:
        return {}
    if not runs and open_[0] not in ARRIVALS:
        return {}
    return {open_[0]: others[0]} if as_float(_first_cell(table, others[0])) >= 0 else {}


def unit_of(table: Table, name: str, source: str, *, dates: bool) -> str | None:
    """The unit that a column of times seems to have, by its cells or by its name `source`.

    None if nothing speaks for another unit than seconds, or if `name` holds no times. `dates`: a
    date needs a unit.
    """
    if name not in TIMES:
        return None
    if dates and name in ARRIVALS and is_date(_first_cell(table, name, source)):
        return DATE
    return unit_in(source)


def _has_dates(table: Table, name: str) -> bool:
    """Whether the first thousand cells of a column are all dates."""
    cells = table.columns[name][:1000]
    return bool(len(cells)) and all(is_date(str(cell)) for cell in cells)


def _first_cell(table: Table, *names: str) -> str:
    """The first cell of the first of these columns that the table has; empty without rows."""
    cells = next(table.columns[name] for name in names if name in table.columns)
    return str(cells[0]) if len(cells) else ""


def units_text(units: Mapping[str, str]) -> str:
    """The value of `--units`."""
    return ",".join(f"{name}={unit}" for name, unit in units.items())


def _native(table: Table) -> WorkFields:
    return WorkFields(
        arrival_s=table.seconds("arrival_s"),
        gpus=table.counts("gpus", MAX_GPUS),
        iterations=table.counts("iterations"),
        compute_s=table.seconds_or_0("compute_s"),
        models=table.texts("model"),
        users=table.texts_or("user", ""),
    )


def _simple(table: Table) -> WorkFields:
    """The duration is divided by the given iterations, else into steps of at most a second."""
    duration_s = table.seconds("duration", positive=True)
    whole_s = np.maximum(1, np.ceil(duration_s)).astype(np.int64)
    iterations = table.counts_or("iterations", whole_s.tolist())
    warnings, steps = [], ""
    if "iterations" not in table.columns:
        warnings.append(
            f"{counted(len(table), 'job')} without iterations: steps of at most 1 s "
            "(the share of communication is the model's, whatever the step)"
        )
        steps = "The trace states no iterations, so steps of at most 1 s are assumed"
    models = table.texts_or("model", UNKNOWN_MODEL)
    if unnamed := models.count(UNKNOWN_MODEL):
        warnings.append(
            f"{counted(unnamed, 'job')} without a model: give --backend none or --model-rule"
        )
    # Philly tables name no user: there the virtual cluster is the tenant.
    users = table.texts_or("user" if "user" in table.columns else "vc", "")
    return WorkFields(
        arrival_s=table.seconds("submit_time"),
        gpus=table.counts("num_gpus", MAX_GPUS),
        iterations=iterations,
        compute_s=duration_s / iterations,
        models=models,
        users=users,
        warnings=tuple(warnings),
        steps=steps,
        units={"duration": "s or [D-]HH:MM:SS"} if table.has_clocks("duration") else {},
    )


def _sensetime(table: Table) -> WorkFields:
    """The file counts iterations for one GPU: a gang of g GPUs runs a g-th of them, rounded up."""
    gpus = table.counts("max_parallelism", MAX_GPUS)
    total = table.counts("total_iterations")
    arrival = next((x for x in ("arrival_time", "start_time") if x in table.columns), None)
    if arrival is None:
        raise TraceError(
            f"{table.place(0)}: format sensetime needs column 'arrival_time' or 'start_time', in "
            "seconds; add one"
        )
    uneven = int(np.count_nonzero(total % gpus))
    warnings = (
        f"{counted(uneven, 'job')} had their iterations rounded up to a multiple of their GPUs",
    )
    return WorkFields(
        arrival_s=table.seconds(arrival),
        gpus=gpus,
        iterations=-(-total // gpus),  # division rounded up
        compute_s=table.seconds("time_per_iteration", positive=True),
        models=table.texts("model"),
        users=table.texts_or("user", ""),
        warnings=warnings if uneven else (),
    )


# Required columns that hold texts.
_TEXTS = frozenset({"job_id", "model"})

# The formats that a mapping applies to unless it names another.
_MAPPED = frozenset({"native", "simple"})

# Optional columns of every own format; `assemble` reads them.
_COMMON = ("gpus_min", "gpus_max", "restart_s", "checkpoint_interval_s", "checkpoint_cost_s")

# A job's tenant, priority, tables, kinds of GPUs, and needs other than GPUs. Not in sensetime: its
# files have a column `priority` that means something else.
_QUOTAS = (
    "tenant", "priority", "tables", "gpu_kinds", "cpu_cores", "memory_gib", SHARE, GPU_MEMORY,
    MIG,
)  # fmt: skip

AXES = "parallelism"
"""How the job is divided; it becomes part of the model's name (`divided_models.py`)."""

OWN_FORMATS = (
    OwnFormat(
        id="native",
        title="artist's own columns (CSV, Parquet)",
        required=("job_id", "arrival_s", "gpus", "model", "iterations", "compute_s"),
        optional=("user", *_COMMON, *_QUOTAS, AXES),
        read=_native,
        derived="compute_s",
    ),
    OwnFormat(
        id="simple",
        title="jobs with a duration (CSV, Parquet)",
        required=("job_id", "submit_time", "num_gpus", "duration"),
        optional=("model", "iterations", "user", "vc", *_COMMON, *_QUOTAS, AXES),
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
