"""From a table in one of artist's own formats to a trace: the checked jobs in order of arrival."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from artist.cluster.mig import ALL, NAMES, SLICE_MILLI
from artist.errors import TraceError
from artist.garbage_collector import many_objects
from artist.trace.native.formats import OwnFormat, WorkFields
from artist.trace.native.table import GPU_MEMORY, MAX_GPUS, MIG, SHARE, Table
from artist.trace.native.time_units import unix_zero_s
from artist.trace.native.trace import Trace, shifted_words
from artist.trace.native.untimed import odd_length
from artist.units import (
    CORE_MILLI,
    GIB_MIB,
    GPU_MILLI,
    MAX_TIME_S,
    MOST_CORES,
    MOST_GIB,
    TICKS_PER_S,
)
from artist.workload.job import LOWEST_PRIORITY, Job, is_ranged

_BLOCK = 65_536


def assemble_own(table: Table, format_: OwnFormat, digest: str) -> Trace:
    """The trace in a table of one of artist's own formats.

    Raises:
        TraceError: the table has no rows, or a row is not a job; names the first such row.
    """
    if not len(table):
        raise TraceError(f"{table.path}: the trace has no jobs; give at least one row")
    work = format_.read(table)
    first_s = unix_zero_s(float(work.arrival_s.min()))
    if first_s:
        work = work._replace(arrival_s=work.arrival_s - first_s)
    jobs = _jobs(table, work, format_)
    trace = ordered_trace(table, format_.id, digest, jobs, table.numbers, work.arrival_s)
    return replace(
        trace,
        warnings=work.warnings,
        steps=work.steps,
        units=work.units,
        recorded="duration" in format_.required,
        shifted=shifted_words(first_s),
        ranged=not table.columns.keys().isdisjoint(("gpus_min", "gpus_max"))
        and any(is_ranged(job) for job in jobs),
    )


def ordered_trace(
    table: Table,
    format_: str,
    digest: str,
    jobs: list[Job],
    numbers: Sequence[int],
    arrivals_s: npt.NDArray[np.float64],
) -> Trace:
    """The jobs of a table by arrival. Jobs that arrive together keep their order.

    `numbers` are their places in the file, `arrivals_s` their arrivals.
    """
    if (arrivals_s[1:] < arrivals_s[:-1]).any():
        order = np.argsort(arrivals_s, kind="stable").tolist()
        jobs, numbers = [jobs[i] for i in order], [numbers[i] for i in order]
    if not isinstance(numbers, range):
        numbers = tuple(numbers)
    path = table.path
    return Trace(path.stem, format_, tuple(jobs), digest, numbers, table.unit, path)


def _jobs(table: Table, work: WorkFields, format_: OwnFormat) -> list[Job]:
    """The jobs in the order of the file, with the columns that all own formats share."""
    ids = _unique_ids(table)
    _check_lengths(table, work)
    gpus = work.gpus.tolist()
    gpus_min = table.counts_or("gpus_min", gpus, MAX_GPUS)
    table.require(gpus_min <= work.gpus, "gpus_min", "at most the job's gpus")
    gpus_max = table.counts_or("gpus_max", gpus, MAX_GPUS)
    table.require(gpus_max >= work.gpus, "gpus_max", "at least the job's gpus")
    columns: tuple[Iterable[Any], ...] = (
        ids,
        _cells(work.arrival_s),
        gpus,
        work.models,
        _cells(work.iterations),
        _cells(work.compute_s),
        work.users,
        _cells(gpus_min),
        _cells(gpus_max),
        _cells(table.seconds_or("restart_s", 0.0)),
        table.hints(),
        table.seconds_if_any("checkpoint_interval_s"),
        table.seconds_if_any("checkpoint_cost_s"),
        *_quotas(table, format_),
        *_parts_of_gpus(table, format_, work.gpus),
    )
    with many_objects():
        return list(map(Job, *columns))  # in the order of Job's fields


def _quotas(table: Table, format_: OwnFormat) -> tuple[Iterable[Any], ...]:
    """The columns from tenants to memory, if the format has them."""
    if "tenant" not in format_.optional:
        return tuple(repeat(absent, len(table)) for absent in (None, None, (), (), 0, 0))
    return (
        table.texts_if_any("tenant"),
        table.counts_if_any("priority", LOWEST_PRIORITY),
        table.words("tables"),
        table.words("gpu_kinds"),
        table.parts_or_0("cpu_cores", CORE_MILLI, MOST_CORES),
        table.parts_or_0("memory_gib", GIB_MIB, MOST_GIB),
    )


def _parts_of_gpus(
    table: Table, format_: OwnFormat, gpus: npt.NDArray[np.int64]
) -> tuple[Iterable[Any], ...]:
    """Three columns: share of a GPU in thousandths, memory per GPU, and MIG profile.

    The share is 1000 unless a job asks for a part; memory is in MiB, 0 if not stated.
    """
    if GPU_MEMORY not in format_.optional:
        return tuple(repeat(absent, len(table)) for absent in (GPU_MILLI, 0, ""))
    memory = table.parts_or_0(GPU_MEMORY, GIB_MIB, MOST_GIB)
    if SHARE not in table.columns and MIG not in table.columns:
        return repeat(GPU_MILLI, len(table)), memory, repeat("", len(table))
    milli = np.full(len(table), GPU_MILLI)
    if SHARE in table.columns:
        milli = table.thousandths(SHARE)
    for other in ("gpus_min", "gpus_max"):
        gpus = np.maximum(gpus, table.counts_or(other, gpus.tolist(), MAX_GPUS))
    one = (milli == GPU_MILLI) | (gpus == 1)
    table.require(one, SHARE, "none for a job of several GPUs, which holds whole ones")
    mig = table.texts_or(MIG, "")
    if any(mig):
        memory = list(memory)
        for index, name in enumerate(mig):
            if name:
                given = int(gpus[index]), int(milli[index]), memory[index]
                milli[index] = _milli_of_instance(table, index, name, *given)
    return _cells(milli), memory, mig


def _milli_of_instance(
    table: Table, index: int, name: str, gpus: int, milli: int, memory_mib: int
) -> int:
    """Thousandths of a GPU that a MIG instance holds, after a check of the row's other columns."""
    if name not in ALL:
        raise table.error(index, MIG, f"one of {', '.join(NAMES)}")
    if gpus > 1:
        raise table.error(index, MIG, "none for a job of several GPUs, which holds whole ones")
    own = SLICE_MILLI * ALL[name].memory
    if milli not in (own, GPU_MILLI):
        raise table.error(index, SHARE, f"{own / GPU_MILLI:g} or nothing beside {name}")
    gib = int(name.partition(".")[2].removesuffix("gb"))
    if memory_mib > gib * GIB_MIB:
        raise table.error(index, GPU_MEMORY, f"at most {gib}, the memory of {name}")
    return own


def _cells(values: npt.NDArray[Any]) -> Iterable[Any]:
    """The values as Python numbers.

    Converts a block at a time, and yields one object for all if all values are equal: both save
    memory, as a million jobs have several columns of numbers.
    """
    if len(values) and (values == values[0]).all():
        return repeat(values[0].item(), len(values))
    blocks = (values[i : i + _BLOCK].tolist() for i in range(0, len(values), _BLOCK))
    return chain.from_iterable(blocks)


def _check_lengths(table: Table, work: WorkFields) -> None:
    """Refuse a job shorter than a tick of the engine's clock or longer than it can count."""
    ideal_s = work.iterations * work.compute_s
    good = (ideal_s >= 1 / TICKS_PER_S) & (ideal_s <= MAX_TIME_S) | (work.compute_s == 0)
    if not good.all():
        index = int(np.argmin(good))
        raise odd_length(table.place(index), work.iterations[index], work.compute_s[index])


def _unique_ids(table: Table) -> list[str]:
    ids = table.texts("job_id")
    if len(set(ids)) < len(ids):
        first: dict[str, int] = {}
        for index, job_id in enumerate(ids):
            if first.setdefault(job_id, index) != index:
                taken = f"a new id (it was used at {table.place(first[job_id])})"
                raise table.error(index, "job_id", taken)
    return ids
