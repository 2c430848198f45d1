"""The pool of each job: the iterations of all its GPUs together, as the original counts them.

A trace holds whole batches, as they were run. The original counts down a pool that need not be a
multiple of the batch. The pool matters only for the rounding of priorities. But rounding decides
ties, and all single-GPU jobs tie: they have priority 1. There are two sources of a pool:

- the job files of the original (`total_iterations`). If the original's job groups shortened a job
  (section 3 of `SEMANTICS.md`), this number does not fit the batches of the trace and is not used;
- a recorded run. The row of a job's first expiry says how many iterations are left.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from artist.errors import TraceError
from artist.workload.job import Job
from validation.original.files import RecordedRun, RecordedTrace
from validation.original.scheduler import POOL


def pool_of(job: Job, remaining: int, granularity: int) -> int:
    """The pool, from the iterations that were left at the end of the job's first lease."""
    batch = granularity * job.gpus
    return remaining + (job.iterations * job.gpus - remaining) // batch * batch


def pools(run: RecordedRun, trace: RecordedTrace, granularity: int) -> Mapping[str, int]:
    """Job name -> pool, for the jobs that lost a lease in a run."""
    jobs = {job.id: job for job in trace.jobs}
    by_job: dict[str, int] = {}
    for row in run.rows:
        if row.event == "EXPIRE" and row.job not in by_job:
            by_job[row.job] = pool_of(jobs[row.job], row.remaining, granularity)
    return by_job


Totals = Mapping[tuple[str, int, float], int]
"""(job name, GPUs, seconds per iteration) -> iterations of all GPUs together."""


def read_totals(paths: Iterable[Path]) -> Totals:
    """Read the original's job files: JSON lists of jobs whose values are texts.

    Raises:
        TraceError: a file is not a job file.
    """
    totals = {}
    for path in paths:
        try:
            for job in json.loads(path.read_text(encoding="utf-8")):
                key = (str(job["job_id"]), int(job["max_parallelism"]))
                totals[(*key, float(job["time_per_iteration"]))] = int(job["total_iterations"])
        except (OSError, KeyError, ValueError, TypeError) as cause:
            raise TraceError(f"{path}: not a job file of the original ({cause!r})") from cause
    return totals


def with_pools(
    trace: RecordedTrace,
    totals: Totals,
    runs: Sequence[tuple[RecordedRun, RecordedTrace]],
    granularity: int,
) -> RecordedTrace:
    """The trace with the pools of its jobs as hints, as far as job files and its runs tell them."""
    known: dict[str, int] = {}
    for job in trace.jobs:
        total = totals.get((job.id, job.gpus, job.compute_s), 0)
        if -(-total // (granularity * job.gpus)) * granularity == job.iterations:
            known[job.id] = total
    for run, its in runs:
        if its.path == trace.path:
            known.update(pools(run, its, granularity))
    jobs = tuple(
        replace(job, hints={**job.hints, POOL: known[job.id]}) if job.id in known else job
        for job in trace.jobs
    )
    return replace(trace, jobs=jobs)
