"""A recording of a Slurm cluster, its jobs and their runs, as a scenario.

A folder has the output of Slurm: the texts of `artist cluster import --slurm`, and `sacct.txt` (or
`sacct.txt.gz`) of `sacct -a -P -D --format=ALL`. Each job arrives when it became eligible, and runs
as long as its recorded run. After a preemption, the last run counts; after any other end, the next
run is a job of its own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from artist.cluster.cluster_file import cluster_from
from artist.errors import ConfigError, TraceError
from artist.experiments.recorded.cluster_changes import units
from artist.io.reading import is_file
from artist.io.writing import write_whole
from artist.policies.slurm.request import dependencies
from artist.policies.slurm.settings import settings_of
from artist.results.terms.number_text import percent
from artist.slurm.cluster_import import cluster_document, lacked
from artist.slurm.facts import SlurmFacts
from artist.slurm.submit_line import gpu_kinds_of, one_word_each
from artist.slurm.texts import Record, hosts, log_rows, settings, unpacked
from artist.trace.foreign.sacct import PART_OF_A_HETEROGENEOUS_JOB, following, goes_on
from artist.trace.native.choices import Fractional, Rules
from artist.trace.native.time_units import moment_s, zoned_s
from artist.trace.native.trace import Trace
from artist.trace.native.writer import write_native
from artist.trace.read import read_trace
from artist.units import counted
from artist.workload.job import Job

_NEEDED = ("JobID", "Submit", "Start")
_KEPT = (
    *_NEEDED, "Eligible", "End", "State", "JobName", "NodeList", "Flags", "Reason", "ReqTRES",
    "SubmitLine", "Comment",
)  # fmt: skip
"""The columns of runs to keep in memory; a log may be long."""


@dataclass(frozen=True)
class Recording:
    """A recording, and the scenario that simulates it."""

    inputs: Path
    """Where its cluster file and its trace are."""
    document: Mapping[str, Any]
    """The content of the cluster file."""
    trace: Trace
    runs: Mapping[str, Sequence[Record]]
    """The rows of each job that ran, in order."""
    epoch_s: float
    """The Unix time at which the trace begins. Times without a zone count as UTC."""
    settings: Mapping[str, Any]
    """Settings of a scenario under the policy `slurm`."""
    lacks: tuple[str, ...] = ()
    """What the folder does not say about the cluster, and which jobs are left out, in words."""

    @property
    def jobs(self) -> list[Job]:
        """The jobs as `slurm` runs them: in one iteration, since a preempted job begins again."""
        return [replace(x, compute_s=x.ideal_s, iterations=1) for x in self.trace.jobs]

    def not_modelled(self) -> tuple[str, ...]:
        """What this Slurm did but the policy `slurm` does not, in words."""
        slurm = cluster_from(self.document, str(self.inputs)).file.slurm or SlurmFacts()
        jobs = self.trace.jobs
        inside = sum(bool(job.hints.get("hint_reservation")) for job in jobs)
        ends = [self.runs[job.id][-1] for job in jobs]
        running = sum("End" in x.values and moment_of(x, "End") is None for x in ends)
        still = (f"how long {counted(running, 'job')} still ran, which end with the log",)
        reserved = (f"jobs in reservations: {inside:,}, which run outside them",)
        return (
            *settings_of(slurm).not_modelled,
            *self.lacks,
            *_dependencies(jobs),
            *_several_kinds(jobs),
            *(reserved if inside else ()),
            *(still if running else ()),
        )


def read_recording(
    folder: Path,
    inputs: Path,
    *,
    keep_names: bool,
    log: Path | None = None,
    models: Mapping[str, str] = MappingProxyType({}),
) -> Recording:
    """The recording in a folder. Its cluster file and its trace are written to `inputs`.

    `log` is a text of sacct in place of the folder's. `models` are those of names of jobs, as in
    `artist.trace.native.choices.Rules`.

    Raises:
        ConfigError: a text is missing or broken; names file and line.
        TraceError: the log is broken; names file and line.
    """
    try:
        inputs.mkdir(parents=True, exist_ok=True)
    except OSError as cause:
        raise ConfigError(f"{inputs}: cannot be made ({cause.strerror}); choose another") from cause
    log = log or log_of(folder, inputs)
    trace_file = inputs / "trace.csv"
    document = cluster_document(folder, keep_names=keep_names)
    cluster = write_cluster(document, inputs / "cluster.yaml")
    # The imported cluster has no slices of GPUs, so jobs on slices are left out.
    rules = Rules(
        model="keep", keep_names=keep_names, models=models, fractional=Fractional.DROP,
        still_running=True,
    )  # fmt: skip
    read = read_trace(log, format_="sacct", rules=rules)
    slurm, (runs, parts) = SlurmFacts(**document["slurm"]), runs_of(log)
    trace = _in_partitions_with_gpus(read, slurm)
    kinds = {x["name"]: x["kind"] for x in units(document, "machine") if "kind" in x}
    trace = _of_asked_kinds(trace, runs, slurm, kinds)
    epoch_s = _epoch_s(trace, runs)
    chosen = {
        "cluster": str(cluster),
        "trace": str(trace_file),
        "policy": "slurm",
        "backend": "none",
        "policy_options": {
            "epoch_s": round(epoch_s),
            "calc_phase_s": _calc_phase_s(folder, epoch_s),
            "not_modelled": "ignore",
            "kill": False,  # a log holds what ran before Slurm killed it
        },
    }
    zones = _zones(document, runs[trace.jobs[0].id][0])
    if left_out := _heterogeneous(parts, trace.jobs):
        others = {x: n for x, n in trace.dropped.items() if x != PART_OF_A_HETEROGENEOUS_JOB}
        trace = replace(trace, dropped=others)
    lacks = (*lacked(folder), *zones, *left_out)
    recording = Recording(inputs, document, trace, runs, epoch_s, chosen, lacks)
    write_native(recording.jobs, trace_file)
    return recording


def _in_partitions_with_gpus(trace: Trace, slurm: SlurmFacts) -> Trace:
    """The trace without jobs whose partitions have no whole GPUs.

    They ran on slices, which sacct counts as GPUs where AccountingStorageTRES names no kinds.
    """
    without = {x.name for x in slurm.partitions if not x.nodes}
    kept = [
        index
        for index, job in enumerate(trace.jobs)
        if not without.issuperset(str(job.hints.get("hint_partition", "")).split(","))
    ]
    if len(kept) == len(trace.jobs):
        return trace
    if not kept:
        raise TraceError(f"{trace.path}: no job ran in a partition with GPUs; print more days")
    left_out = {"in a partition without GPUs": len(trace.jobs) - len(kept)}
    return replace(
        trace,
        jobs=tuple(trace.jobs[index] for index in kept),
        numbers=[trace.numbers[index] for index in kept],
        dropped={**trace.dropped, **left_out},
    )


def _of_asked_kinds(
    trace: Trace, runs: Mapping[str, Sequence[Record]], slurm: SlurmFacts, kinds: Mapping[str, str]
) -> Trace:
    """The trace with the kind of GPUs that each job asked for, if the cluster has several.

    `kinds` has the kind of each machine. A kind that the job's partitions lack does not count: they
    had other machines when it ran.
    """
    if len({*kinds.values()}) < 2:
        return trace
    of_partition = {
        name: {*kinds.values()}
        if x.nodes == "ALL"
        else {kinds[host] for host in hosts(x.nodes, "slurm.partitions") if host in kinds}
        for name, x in slurm.gpu_partitions.items()
    }

    def asked(job: Job) -> tuple[str, ...]:
        first = runs[job.id][0]
        line = one_word_each(*map(first.text, ("SubmitLine", "JobName", "Comment")))
        found = _KIND.findall(first.text("ReqTRES")) or gpu_kinds_of(line)
        partitions = str(job.hints.get("hint_partition") or slurm.default_partition).split(",")
        there = (kind for x in partitions for kind in of_partition.get(x, kinds.values()))
        names = {kind.lower(): kind for kind in there}
        return tuple(names[x.lower()] for x in found if x.lower() in names)

    return replace(trace, jobs=tuple(replace(x, gpu_kinds=asked(x)) for x in trace.jobs))


_KIND = re.compile(r"gres/gpu:([^=,]+)=")


def _dependencies(jobs: Sequence[Job]) -> tuple[str, ...]:
    """Say that some dependencies are not modelled; these jobs arrive when they did."""
    others = [others[0] for job in jobs if (others := dependencies(job)[1])]
    return (
        (f"dependencies of {counted(len(others), 'job')}, such as {others[0]}",) if others else ()
    )


def _several_kinds(jobs: Sequence[Job]) -> tuple[str, ...]:
    """Say which jobs asked for GPUs of several kinds at once; they take any of these."""
    mixed = [job for job in jobs if len(job.gpu_kinds) > 1]
    such = f"{counted(len(mixed), 'job')} that asked for each of several kinds of GPUs, such as "
    return (f"{such}{mixed[0].id} ({', '.join(mixed[0].gpu_kinds)})",) if mixed else ()


def write_cluster(document: Mapping[str, Any], path: Path) -> Path:
    """Write a cluster file."""
    write_whole(path, yaml.safe_dump(dict(document), sort_keys=False, default_flow_style=None))
    return path


def log_of(folder: Path, inputs: Path) -> Path:
    """The text of sacct, unpacked."""
    plain, packed = folder / "sacct.txt", folder / "sacct.txt.gz"
    if is_file(plain):
        return plain
    if not is_file(packed):
        raise ConfigError(
            f"{folder}: no sacct.txt; write it with: SLURM_BITSTR_LEN=0 sacct -a -P -D "
            "--format=ALL > sacct.txt"
        )
    log = inputs / "sacct.txt"
    write_whole(log, unpacked(packed))
    return log


def runs_of(log: Path) -> tuple[dict[str, list[Record]], list[Record]]:
    """The rows of each job that ran, in order; jobs as `foreign/sacct.py` has them.

    And those of parts of heterogeneous jobs that ran.
    """
    runs: dict[str, list[Record]] = {}
    parts = list[Record]()
    latest: dict[str, str] = {}
    for record in log_rows(log, _NEEDED, _KEPT):
        id_ = record.text("JobID")
        if any(mark in id_ for mark in ".[") or moment_of(record, "Start") is None:
            continue
        if "+" in id_:
            parts.append(record)
        else:
            job = latest.get(id_, id_)
            if job in runs and not goes_on(runs[job][-1].text("State")):
                job = latest[id_] = following(job)
            runs.setdefault(job, []).append(record)
    return runs, parts


def _heterogeneous(parts: Sequence[Record], jobs: Sequence[Job]) -> tuple[str, ...]:
    """Say how much heterogeneous jobs with GPUs ran, which are left out."""
    parts = [x for x in parts if _gpus(x)]
    if not parts:
        return ()
    gpu_s = math.fsum(
        ((moment_of(x, "End") or 0.0) - (moment_of(x, "Start") or 0.0)) * _gpus(x)
        for x in parts
        if moment_of(x, "End") is not None
    )
    share = gpu_s / (gpu_s + math.fsum(job.gpus * job.ideal_s for job in jobs))
    ids = dict.fromkeys(x.text("JobID").partition("+")[0] for x in parts)
    return (
        f"{counted(len(ids), 'heterogeneous job')} such as {next(iter(ids))}, with "
        f"{percent(share)} % of the GPU-hours, whose GPUs count as free",
    )


def _gpus(part: Record) -> int:
    """The GPUs that a part asked for, in all or by kind."""
    counts = {kind: int(count) for kind, count in _GPUS.findall(part.text("ReqTRES"))}
    return counts.get("", sum(counts.values()))


_GPUS = re.compile(r"(?:^|,)gres/gpu((?::[^,=]+)?)=(\d{1,9})(?=,|$)", re.ASCII)


def moment_of(record: Record, key: str) -> float | None:
    """Seconds since 1970; None where Slurm does not know the time."""
    return _moment_s(record.text(key))


def _moment_s(text: str) -> float | None:
    if text.isdecimal():
        return float(text)
    moment = moment_s(text)
    return zoned_s(text) if moment is None else moment


def _zones(document: Mapping[str, Any], run: Record) -> tuple[str, ...]:
    """Say that reservations and log may have times of different zones; empty if they agree."""
    kept = (one["starts_at"] for one in document["slurm"].get("reservations", ()))
    is_local = {moment_s(text) is not None for text in (run.text("Start"), *kept)}
    if len(is_local) == 1:
        return ()
    return (
        "reservations at their times: some times have a zone and others none; print "
        "reservations.txt and sacct.txt with the same SLURM_TIME_FORMAT",
    )


def _epoch_s(trace: Trace, runs: Mapping[str, Sequence[Record]]) -> float:
    """The Unix time at which the trace begins.

    Tasks of an array may have been eligible after they arrive (`foreign/sacct.py`), others not.
    """

    def begin_s(job: Job) -> float:
        moments = (moment_of(runs[job.id][0], key) for key in ("Submit", "Eligible"))
        return max((x for x in moments if x is not None), default=math.inf) - job.arrival_s

    return min(map(begin_s, trace.jobs))


def _calc_phase_s(folder: Path, epoch_s: float) -> float:
    """Seconds from the trace's begin to a tick of PriorityCalcPeriod, modulo a day.

    The period counts from slurmctld's start, BOOT_TIME in `scontrol show config`.
    """
    path = folder / "config.txt"
    started_s = _moment_s(settings(path).get("BOOT_TIME", "")) if is_file(path) else None
    return 0.0 if started_s is None else (started_s - epoch_s) % 86400.0
