"""The iterations that the original gave each job, where a recorded run tells.

Traces hold whole batches, as executed. The original counts down a pool of iterations of all GPUs
together that need not be whole batches; an expiry's row says what is left of it, so the first
one gives the pool away. It decides nothing but how priorities round, and thereby ties.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from artist.policies.original import POOL
from artist.reference.files import RecordedRun, ReferenceTrace
from artist.workload.job import Job


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


def with_pools(
    trace: ReferenceTrace, runs: Iterable[tuple[RecordedRun, ReferenceTrace]], granularity: int
) -> ReferenceTrace:
    """A trace whose jobs carry their pools as hints, as far as runs of this trace tell."""
    known: dict[str, int] = {}
    for run, its in runs:
        if its.path == trace.path:
            known.update(pools(run, its, granularity))
    jobs = tuple(
        replace(job, hints={**job.hints, POOL: known[job.id]}) if job.id in known else job
        for job in trace.jobs
    )
    return replace(trace, jobs=jobs)
