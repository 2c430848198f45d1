"""From a table in a foreign format to a trace.

Takes the jobs that the format's reader yields, drops those that never ran on GPUs, shifts
arrivals, and fills in what the format lacks. Both are counted: drops by reason, fillings by rule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from artist.errors import TraceError
from artist.garbage_collector import many_objects
from artist.trace.foreign.fill import fill_models, steps
from artist.trace.foreign.formats import ForeignFormat
from artist.trace.foreign.rows import (
    NO_ID,
    PART_OF_A_GPU,
    REPEATED_ID,
    ZERO_DURATION,
    ForeignJob,
    JobOrReason,
)
from artist.trace.native.assemble import ordered_trace
from artist.trace.native.choices import Fractional, Rules
from artist.trace.native.table import Table
from artist.trace.native.time_units import unix_zero_s
from artist.trace.native.trace import Trace, shifted_words
from artist.units import GPU_MILLI, MAX_TIME_S, TICKS_PER_S, counted
from artist.workload.job import Job


def assemble_foreign(table: Table, format_: ForeignFormat, rules: Rules, digest: str) -> Trace:
    """The trace in a table of a foreign format.

    Raises:
        TraceError: a row is malformed, or no row is a job that ran on GPUs.
        ConfigError: the rules require a name of a model that no job has.
    """
    with many_objects():
        kept, dropped = _sort_out(table, format_.read(table, rules), rules)
    if not kept:
        reasons = "; ".join(f"{reason}: {n}" for reason, n in dropped.items()) or "no rows"
        raise TraceError(
            f"{table.path}: the trace has no jobs that ran on GPUs ({reasons}); give another file"
        )
    first_s = min(job.submit_s for job in kept)
    unix_s = 0.0 if format_.dated else unix_zero_s(first_s)
    zero_s = first_s if format_.dated else unix_s
    filled = fill_models([x.model for x in kept], [x.gpus for x in kept], rules)
    with many_objects():
        jobs = [_job(table, *x, zero_s) for x in zip(kept, filled.models, strict=True)]
        if rules.fractional is Fractional.SHARE:
            jobs = [replace(job, gpu_milli=x.gpu_milli) for job, x in zip(jobs, kept, strict=True)]
    numbers = [table.numbers[job.row] for job in kept]
    arrivals_s = np.array([job.arrival_s for job in jobs])
    return replace(
        ordered_trace(table, format_.id, digest, jobs, numbers, arrivals_s),
        filled=(*_fillings(kept, format_, rules), *filled.named, *filled.notes),
        dropped=dict(dropped),
        drawn=filled.drawn,
        recorded=not format_.run_time,
        shifted=shifted_words(unix_s),
    )


def _sort_out(
    table: Table, jobs: Iterable[JobOrReason], rules: Rules
) -> tuple[list[ForeignJob], Counter[str]]:
    """The jobs to keep, and how many rows were dropped for each reason."""
    kept: list[ForeignJob] = []
    dropped: Counter[str] = Counter()
    ids: set[str] = set()
    for job in jobs:
        reason = job if isinstance(job, str) else _reason(table, job, ids, rules)
        if reason:
            dropped[reason] += 1
        elif not isinstance(job, str):
            ids.add(job.id)
            kept.append(job)
    return kept, dropped


def _reason(table: Table, job: ForeignJob, ids: set[str], rules: Rules) -> str:
    """Why a job is dropped; empty if it is kept. `ids` are the ids of earlier jobs."""
    if not job.id:
        return NO_ID
    if job.id in ids:
        return REPEATED_ID
    if job.run_s < 1 / TICKS_PER_S:
        return ZERO_DURATION
    if job.run_s > MAX_TIME_S:
        raise TraceError(
            f"{table.place(job.row)}: job {job.id[:60]!r} ran for {job.run_s:.3g} s, expected at "
            f"most {MAX_TIME_S:.0e}; correct this row"
        )
    if job.shared and rules.fractional is Fractional.ERROR:
        raise TraceError(
            f"{table.place(job.row)}: job {job.id[:60]!r} asks for part of a GPU, which few "
            "policies hand out; convert with --fractional share, --fractional round-up or drop"
        )
    return PART_OF_A_GPU if job.shared and rules.fractional is Fractional.DROP else ""


def _job(table: Table, job: ForeignJob, model: str, first_s: float) -> Job:
    """The job with its model and steps, arriving `first_s` earlier than in the file."""
    arrival_s = job.submit_s - first_s
    if not 0 <= arrival_s <= MAX_TIME_S:
        raise TraceError(
            f"{table.place(job.row)}: job {job.id[:60]!r} arrives {arrival_s:.3g} s after the "
            f"first, expected from 0 to {MAX_TIME_S:.0e}; correct this row"
        )
    iterations = job.iterations or steps(job.run_s, model)
    return Job(
        id=job.id,
        arrival_s=arrival_s,
        gpus=job.gpus,
        model=model,
        iterations=iterations,
        compute_s=job.run_s / iterations,
        user=job.user,
        tenant=job.tenant,
        cpu_milli=job.cpu_milli,
        memory_mib=job.memory_mib,
        hints=job.hints,
    )


def _fillings(kept: list[ForeignJob], format_: ForeignFormat, rules: Rules) -> list[str]:
    """What was filled in apart from models: by which rule, and in how many jobs."""
    notes = []
    if format_.run_time:
        notes.append(
            f"run time ({format_.run_time.format(seed=rules.seed)}): {counted(len(kept), 'job')}"
        )
    if stepless := sum(not job.iterations for job in kept):
        notes.append(
            "iterations and compute_s (the run time in the model's steps of Dally's workloads): "
            + counted(stepless, "job")
        )
    share = rules.fractional is Fractional.SHARE
    if shared := sum(job.shared and not (share and job.gpu_milli < GPU_MILLI) for job in kept):
        notes.append(f"whole GPUs (parts rounded up): {counted(shared, 'job')}")
    return notes
