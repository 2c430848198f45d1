"""The iterations that the original gave each job: a pool that its GPUs take from together.

Traces hold whole batches, as executed. The original counts down a pool that need not be whole
batches. That decides nothing but how priorities round, and thereby ties; but single-GPU jobs
all have priority 1 and are told apart by nothing else. Two sources tell a pool:

- the job files that the original was given (`total_iterations`), unless its job groups
  shortened the job (SEMANTICS section 3): then they do not fit the batches of the trace;
- a recorded run: an expiry's row says what is left, so the first one gives the pool away.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from artist.errors import TraceError
from artist.policies.original.scheduler import POOL
from artist.workload.job import Job
from validation.original.files import RecordedRun, ReferenceTrace


def pool_of(job: Job, remaining: int, granularity: int) -> int:
    """From what was left at the end of the job's first lease."""
    batch = granularity * job.gpus
    return remaining + (job.iterations * job.gpus - remaining) // batch * batch


def pools(run: RecordedRun, trace: ReferenceTrace, granularity: int) -> Mapping[str, int]:
    """Job name to pool, of the jobs that lost a lease in a run."""
    jobs = {job.id: job for job in trace.jobs}
    found: dict[str, int] = {}
    for row in run.rows:
        if row.event == "EXPIRE" and row.job not in found:
            found[row.job] = pool_of(jobs[row.job], row.remaining, granularity)
    return found


Totals = Mapping[tuple[str, int, float], int]
"""Job name, GPUs and seconds per iteration to iterations of all GPUs together."""


def read_totals(paths: Iterable[Path]) -> Totals:
    """The original's job files: JSON lists of jobs whose values are texts.

    Raises:
        TraceError: a file is something else.
    """
    found = {}
    for path in paths:
        try:
            for job in json.loads(path.read_text(encoding="utf-8")):
                key = (str(job["job_id"]), int(job["max_parallelism"]))
                found[(*key, float(job["time_per_iteration"]))] = int(job["total_iterations"])
        except (OSError, KeyError, ValueError, TypeError) as cause:
            raise TraceError(f"{path}: not a job file of the original ({cause!r})") from cause
    return found


def with_pools(
    trace: ReferenceTrace,
    totals: Totals,
    runs: Sequence[tuple[RecordedRun, ReferenceTrace]],
    granularity: int,
) -> ReferenceTrace:
    """A trace whose jobs carry their pools as hints, as far as job files and its runs tell."""
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
