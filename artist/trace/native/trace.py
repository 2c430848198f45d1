"""A trace: jobs in order of arrival, and the place in a file that each came from.

Checks that need more than the trace itself stand here too: against the catalogue of models and
against the size of a cluster.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from artist.cluster.tree import ONE_KIND
from artist.errors import ConfigError, TraceError, did_you_mean, shortened
from artist.io.digests import PREFIX, sha256
from artist.registry import UnknownNameError
from artist.trace.native.table import place
from artist.units import counted
from artist.workload.job import UNKNOWN_MODEL, Job
from artist.workload.tenants import Tenant


@dataclass(frozen=True, slots=True)
class Trace:
    """Jobs ordered by arrival. Jobs that arrive together keep their order in the file.

    - `digest`: SHA-256 of the file's content, 64 hexadecimal digits (`content_digest`).
    - `numbers`: the place of each job in the file: its line, or another `unit`.
    - `warnings`: decisions of the reader that the user should know, with numbers of jobs.
    - `filled`: what was filled in, by which rule, and in how many jobs.
    - `drawn`: those texts of `filled` that tell of models drawn at random.
    - `mapped`: what a mapping of columns and models did.
    - `units`: units of the columns of times that differ from the format's own unit.
    - `recorded`: whether the file records run times, which became iterations x compute time.
    - `steps`: how run times became steps, in words, if the file has no iterations.
    - `ranged`: whether some job may run on other numbers of GPUs than it wants. Then the trace
      says which jobs are elastic.
    - `shifted`: in words, that arrivals were Unix times and now count from the first job.
    - `dropped`: reasons why rows were left out, with the number of rows.
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
    drawn: tuple[str, ...] = ()
    mapped: tuple[str, ...] = ()
    units: Mapping[str, str] = field(default_factory=dict)
    recorded: bool = False
    shifted: str = ""
    steps: str = ""
    ranged: bool = False

    def place(self, index: int) -> str:
        """Where a job stands in its file, as in `week.csv:17`."""
        return place(self.path or self.name, self.unit, self.numbers[index])


def shifted_words(first_s: float) -> str:
    """Say that arrivals were Unix times, the first of them `first_s`; empty if that is 0."""
    if not first_s:
        return ""
    return f"arrivals are Unix times, so they count from the first job, at {first_s:.0f} s"


def content_digest(content: bytes | str) -> str:
    """The digest of a trace's content. Unlike other digests, it has no `sha256:` in front."""
    return sha256(content).removeprefix(PREFIX)


def head(trace: Trace, jobs: int) -> Trace:
    """A trace of only the first `jobs` jobs in order of arrival.

    Raises:
        ConfigError: `jobs` is less than one, or more than the trace has.
    """
    if not 1 <= jobs <= len(trace.jobs):
        raise ConfigError(
            f"--jobs is {jobs}, but trace {trace.name!r} has {counted(len(trace.jobs), 'job')}; "
            f"give a number from 1 to {len(trace.jobs)}"
        )
    return replace(trace, jobs=trace.jobs[:jobs], numbers=trace.numbers[:jobs])


def check_models(trace: Trace) -> None:
    """Refuse models that the catalogue lacks. Needed only where communication is estimated.

    Raises:
        TraceError: names the first such job, with its file and line, and at most `_NAMED` models.
    """
    # Imported here, because a run without communication does not need the catalogue.
    from artist.workload.models import canonical

    known: set[str] = set()
    unknown: dict[str, tuple[int, UnknownNameError]] = {}
    for index, job in enumerate(trace.jobs):
        if job.model in known or job.model in unknown:
            continue
        try:
            canonical(job.model)
        except UnknownNameError as error:
            if job.model == UNKNOWN_MODEL:
                raise TraceError(
                    f"{trace.place(index)}: job {job.id!r} has no model; say which column holds it "
                    "with --columns model=COLUMN, give all such jobs one with --model-rule MODEL, "
                    "or run without communication: --backend none"
                ) from error
            unknown[job.model] = index, error
        else:
            known.add(job.model)
    if unknown:
        raise _unknown_models(trace, unknown)


def check_tenants(trace: Trace, tenants: Mapping[str, Tenant]) -> None:
    """Refuse jobs of tenants that a scenario with tenants does not name.

    Raises:
        TraceError: names the first such job, with its file and line.
    """
    for index, job in enumerate(trace.jobs if tenants else ()):
        if job.tenant is not None and job.tenant not in tenants:
            hint = did_you_mean(job.tenant, list(tenants))
            raise TraceError(
                f"{trace.place(index)}: job {job.id!r} is of tenant {shortened(job.tenant)}, which "
                f"the scenario does not name ({hint}); add it under tenants or correct this row"
            )


def check_kinds(trace: Trace, by_kind: Mapping[str, int], *, whole: bool) -> None:
    """Refuse jobs that accept a kind of GPUs that the cluster lacks, or too few of them.

    `by_kind`: GPUs of the cluster by kind. `whole`: whether each job needs as many as it asks for,
    and not only the fewest that it can run on.

    Raises:
        TraceError: names the first such job, with its file and line.
    """
    for index, job in enumerate(trace.jobs):
        if not job.gpu_kinds:
            continue
        for kind in job.gpu_kinds:
            if kind not in by_kind:
                hint = _about_kind(kind, [name for name in by_kind if name != ONE_KIND])
                raise TraceError(
                    f"{trace.place(index)}: job {job.id!r} accepts GPUs of kind {shortened(kind)}, "
                    f"which the cluster lacks ({hint}); correct gpu_kinds or the "
                    "cluster file, or leave gpu_kinds out of the trace or its mapping"
                )
        there = sum(by_kind[kind] for kind in {*job.gpu_kinds})
        if there < (least := job.gpus if whole else job.gpus_min):
            raise TraceError(
                f"{trace.place(index)}: job {job.id!r} wants {counted(least, 'GPU')} of kind "
                f"{' or '.join(job.gpu_kinds)}, but the cluster has {there}; accept other kinds or "
                "enlarge the cluster"
            )


def _about_kind(kind: str, known: Sequence[str]) -> str:
    """A remedy for a kind of GPU that the cluster lacks; `known` are the kinds that it has."""
    if not known:
        return "its machines state no kind"
    if len(kinds := re.split(r"[^\w.-]+", kind)) > 1:
        return f"separate kinds with spaces: {shortened(' '.join(kinds).strip())}"
    return did_you_mean(kind, known)


# A message names at most this many models.
_NAMED = 10


def _unknown_models(
    trace: Trace, unknown: Mapping[str, tuple[int, UnknownNameError]]
) -> TraceError:
    """The error about models that the catalogue lacks, each with its first job.

    If a known model has a wrong setting, the remedy is different.
    """
    from artist.workload.models import is_spelled

    first, *others = unknown
    index, error = unknown[first]
    also, which = "", "which model it is"
    if others:
        named = ", ".join(map(shortened, others[: _NAMED - 1]))
        rest = len(others) - (_NAMED - 1)
        more = f" and {rest} more" if rest > 0 else ""
        also, which = f"; unknown as well: {named}{more}", "which models they are"
    where = f"{trace.place(index)}: field 'model' of job {trace.jobs[index].id!r}: {error}"
    if is_spelled(first):
        return TraceError(f"{where}; correct the cell")
    how = f"with --models {shlex.quote(f'{first}=MODEL')}{',...' * bool(others)}"
    if "=" in first:  # --models would end the name there
        how = "under 'models' in a file for --columns (NAME: MODEL)"
    return TraceError(
        f"{where}{also}; say {which} {how}, give all "
        "jobs without a known model one with --model-rule MODEL, or run without communication: "
        "--backend none"
    )


def check_sizes(trace: Trace, gpus: int, larger: str) -> None:
    """Refuse jobs that demand more GPUs than a cluster of `gpus` GPUs has.

    `larger` says how a user makes the cluster larger.

    Raises:
        TraceError: names the first such job, with its file and line.
    """
    for index, job in enumerate(trace.jobs):
        if job.gpus > gpus:
            raise TraceError(
                f"{trace.place(index)}: job {job.id!r} demands {job.gpus} GPUs, but the cluster "
                f"has {gpus}; enlarge the cluster ({larger}) or drop the job"
            )
