"""A trace: jobs in order of arrival, and where each of them was written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from artist.errors import ConfigError, TraceError, UnknownNameError
from artist.trace.native.table import place
from artist.workload.job import Job


@dataclass(frozen=True, slots=True)
class Trace:
    """Jobs ordered by arrival, then by their order in the file.

    `digest` is the SHA-256 of the content; `numbers` are the lines of the jobs
    (or what `unit` says); `warnings` are the decisions a reader took that its
    user should know of, each with the number of jobs it concerns. `filled` says
    by which rule what was filled in, `dropped` how many rows were left out and why.
    """

    name: str
    format: str
    jobs: tuple[Job, ...]
    digest: str
    numbers: Sequence[int]
    unit: str
    path: Path | None = None
    warnings: tuple[str, ...] = ()
    filled: tuple[str, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)

    def place(self, index: int) -> str:
        """Where a job was written, as in `week.csv:17`."""
        return place(self.path or self.name, self.unit, self.numbers[index])


def head(trace: Trace, jobs: int) -> Trace:
    """The first `jobs` jobs in order of arrival.

    Raises:
        ConfigError: less than one job, or more than the trace has.
    """
    if not 1 <= jobs <= len(trace.jobs):
        raise ConfigError(
            f"--jobs is {jobs}, but trace {trace.name!r} has {len(trace.jobs)} jobs; "
            f"give a number from 1 to {len(trace.jobs)}"
        )
    return replace(trace, jobs=trace.jobs[:jobs], numbers=trace.numbers[:jobs])


def check_models(trace: Trace) -> None:
    """Refuse models that the catalogue lacks; call it where communication is estimated.

    Raises:
        TraceError: names the first such job, with its file and line.
    """
    from artist.workload.models import canonical

    known: set[str] = set()
    for index, job in enumerate(trace.jobs):
        if job.model in known:
            continue
        try:
            canonical(job.model)
        except UnknownNameError as error:
            raise TraceError(
                f"{trace.place(index)}: field 'model' of job {job.id!r}: {error}; "
                "or run without communication: --backend none"
            ) from error
        known.add(job.model)


def check_sizes(trace: Trace, gpus: int) -> None:
    """Refuse jobs that a cluster of `gpus` GPUs can never run.

    Raises:
        TraceError: names the first such job, with its file and line.
    """
    for index, job in enumerate(trace.jobs):
        if job.gpus > gpus:
            raise TraceError(
                f"{trace.place(index)}: job {job.id!r} demands {job.gpus} GPUs, but the cluster "
                f"has {gpus}; enlarge the cluster (--racks, --machines-per-rack) or drop the job"
            )
