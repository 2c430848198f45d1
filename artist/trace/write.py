"""Writing a trace in any format that artist writes, and saying what that format cannot say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from artist.errors import ConfigError, UnknownNameError
from artist.trace.foreign.swf import swf_lines
from artist.trace.native.trace import Trace
from artist.trace.native.writer import write_csv, write_parquet, write_simple, write_text
from artist.workload.job import Job

OUTPUTS = ("native", "simple", "swf")

_PARQUET = ".parquet"


class Loss(NamedTuple):
    """Something that a format cannot say, and which jobs have it."""

    what: str
    has: Callable[[Job], bool]


# A step of `simple` is the duration divided by the iterations, the same to rounding.
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
        Loss("hints", lambda job: bool(job.hints)),
    ),
}


def output_format(path: Path, to: str | None) -> str:
    """The format to write: `to`, else SWF for a name in `.swf`, else native.

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
    """Write a trace, whole or not at all; answers what the format could not say.

    Native goes to Parquet where the name ends in `.parquet`, else to CSV. What is
    lost is counted in jobs.

    Raises:
        ConfigError: no such format, or the file cannot be written there.
    """
    chosen = output_format(path, to)
    if chosen == "swf":
        write_text(swf_lines(trace.jobs), path)
    elif chosen == "simple":
        write_simple(trace.jobs, path)
    else:
        write_native = write_parquet if path.suffix == _PARQUET else write_csv
        write_native(trace.jobs, path)
    return _lost(trace.jobs, chosen)


def _lost(jobs: Sequence[Job], to: str) -> tuple[str, ...]:
    counts = ((loss.what, sum(map(loss.has, jobs))) for loss in _LOSSES[to])
    return tuple(f"{what}: {count} jobs" for what, count in counts if count)
