"""Jobs that state no compute time: the catalogue of models knows how long their steps take.

The reader leaves their `compute_s` at 0, as it does not know the GPUs. A run fills it in
(`artist/trace/compute_times.py`).
"""

from __future__ import annotations

from dataclasses import replace

from artist.errors import TraceError, shortened
from artist.registry import UnknownNameError
from artist.trace.native.trace import Trace
from artist.units import MAX_TIME_S, TICKS_PER_S, counted
from artist.workload.job import Job

_FILLED = "compute_s (the catalogue's"


def untimed(trace: Trace) -> list[int]:
    """Which jobs of a trace state no compute time."""
    return [index for index, job in enumerate(trace.jobs) if not job.compute_s]


def filled_text(where: str, jobs: int) -> str:
    """The text of `Trace.filled` that tells of compute times from the catalogue."""
    return f"{_FILLED} {where}): {counted(jobs, 'job')}"


def is_filled_text(text: str) -> bool:
    """Whether a text is a `filled_text`."""
    return text.startswith(_FILLED)


def checked_untimed(trace: Trace) -> Trace:
    """The trace; if jobs state no compute time, `filled` says so.

    Raises:
        TraceError: the catalogue cannot know the compute time of one; names the first such job.
    """
    lacking = untimed(trace)
    if not lacking:
        return trace
    known: set[str] = set()
    for index in lacking:
        job = trace.jobs[index]
        reason = _unknown_time(job, known)
        if reason:
            raise TraceError(
                f"{trace.place(index)}: job {job.id!r} states no compute_s, which {reason}; give "
                "it compute_s, the seconds that a step computes, or correct its model"
            )
    text = filled_text("on the GPUs of a run", len(lacking))
    return replace(trace, filled=(*trace.filled, text))


def _unknown_time(job: Job, known: set[str]) -> str:
    """Why the catalogue has no compute time for a job, in words; empty if it has one."""
    # Imported here, because most traces do not need the catalogue.
    from artist.workload.models import canonical, is_graph

    if job.is_share or job.mig:
        return "the catalogue knows of whole GPUs only"
    if is_graph(job.model):
        return f"the catalogue knows of its models only, not of {shortened(job.model)}"
    if job.model in known:
        return ""
    try:
        canonical(job.model)
    except UnknownNameError as cause:
        return f"the catalogue knows of its models only: {cause}"
    known.add(job.model)
    return ""


def odd_length(place: str, iterations: int, compute_s: float) -> TraceError:
    """The error about a job that is too short or too long for the engine's clock."""
    return TraceError(
        f"{place}: {iterations} iterations of {compute_s} s make a job of "
        f"{iterations * compute_s:.3g} s, expected {1 / TICKS_PER_S:.0e} to {MAX_TIME_S:.0e} s; "
        "correct this row"
    )


def has_odd_length(job: Job) -> bool:
    """Whether the engine's clock cannot count how long a job computes."""
    return not 1 / TICKS_PER_S <= job.ideal_s <= MAX_TIME_S
