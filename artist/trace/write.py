"""Writing a trace in any format that artist can write, with a report of what is lost in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from artist.errors import ConfigError
from artist.io.writing import whole_file
from artist.registry import UnknownNameError
from artist.trace.foreign.swf import swf_lines
from artist.trace.native.trace import Trace
from artist.trace.native.writer import write_csv, write_parquet, write_simple
from artist.workload.job import Job

OUTPUTS = ("native", "simple", "swf")

_PARQUET = ".parquet"


class Loss(NamedTuple):
    """Information that a format has no place for, and which jobs have it."""

    information: str
    has: Callable[[Job], bool]


# `simple` loses nothing that counts: duration / iterations is `compute_s` but for rounding.
_LOSSES: dict[str, tuple[Loss, ...]] = {
    "native": (),
    "simple": (),
    "swf": (
        Loss("ids (jobs are numbered)", lambda job: True),
        Loss("names of models (numbered)", lambda job: True),
        Loss("names of users (numbered)", lambda job: bool(job.user)),
        Loss("iterations and compute_s (their product is the run time)", lambda job: True),
        Loss("gpus_min, gpus_max", lambda job: not job.gpus_min == job.gpus == job.gpus_max),
        Loss("restart_s", lambda job: job.restart_s > 0),
        Loss("times of checkpoints", lambda job: job.checkpoint_interval_s is not None),
        Loss("tenant, priority", lambda job: job.tenant is not None or job.priority is not None),
        Loss("tables", lambda job: bool(job.tables)),
        Loss("gpu_kinds", lambda job: bool(job.gpu_kinds)),
        Loss("hints", lambda job: bool(job.hints)),
    ),
}


def output_format(path: Path, to: str | None) -> str:
    """The format to write: `to`, else SWF for a name that ends in `.swf`, else native.

    Raises:
        ConfigError: there is no such format, or it has no Parquet form.
    """
    chosen = to or ("swf" if path.suffix == ".swf" else "native")
    if chosen not in OUTPUTS:
        raise UnknownNameError("output format", chosen, OUTPUTS, f"one of {', '.join(OUTPUTS)}")
    if path.suffix == _PARQUET and chosen != "native":
        raise ConfigError(f"{path}: {chosen} is written as text; give a name in .csv or .swf")
    return chosen


def write_trace(trace: Trace, path: Path, to: str | None = None) -> tuple[str, ...]:
    """Write a trace, whole or not at all, and return what was lost, with numbers of jobs.

    Native is written as Parquet if the name ends in `.parquet`, else as CSV.

    Raises:
        ConfigError: no such format, or the file cannot be written there.
    """
    chosen = output_format(path, to)
    if chosen == "swf":
        with whole_file(path) as partial, partial.open("w", encoding="utf-8", newline="") as file:
            file.writelines(f"{line}\n" for line in swf_lines(trace.jobs))
    elif chosen == "simple":
        write_simple(trace.jobs, path)
    else:
        write_native = write_parquet if path.suffix == _PARQUET else write_csv
        write_native(trace.jobs, path)
    return _lost(trace.jobs, chosen)


def _lost(jobs: Sequence[Job], to: str) -> tuple[str, ...]:
    counts = ((loss.information, sum(map(loss.has, jobs))) for loss in _LOSSES[to])
    return tuple(f"{information}: {count} jobs" for information, count in counts if count)
