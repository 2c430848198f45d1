"""Compute times of jobs that state none: those of the catalogue of models.

    compute_s = what `artist latency --model MODEL` shows as compute, on the same GPU

A calibration scales them as it scales the model that a backend is asked about.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache

from artist.errors import ConfigError, TraceError
from artist.estimates.calibration import CalibratedModels
from artist.estimates.latency_service import alone_step_s
from artist.trace.native.trace import Trace
from artist.trace.native.untimed import (
    filled_text,
    has_odd_length,
    is_filled_text,
    odd_length,
    untimed,
)


def with_compute_times(trace: Trace, models: CalibratedModels, place: str) -> Trace:
    """The trace with a compute time for every job. `place` ends the note about its GPU.

    Raises:
        TraceError: a model cannot be timed on this GPU, or a job is too long or too short.
    """

    @cache
    def step_s(model: str) -> float:
        return alone_step_s(models.workload(model))

    jobs = list(trace.jobs)
    where: Counter[str] = Counter()
    for index in untimed(trace):
        job = jobs[index]
        try:
            jobs[index] = replace(job, compute_s=step_s(job.model))
        except ConfigError as cause:
            raise TraceError(f"{trace.place(index)}: job {job.id!r}: {cause}") from cause
        if has_odd_length(jobs[index]):
            raise odd_length(trace.place(index), job.iterations, jobs[index].compute_s)
        where[models.timed_on(job.model)] += 1
    if not where:
        return trace
    kept = (text for text in trace.filled if not is_filled_text(text))
    texts = (filled_text(f"{words}{place}", count) for words, count in where.items())
    return replace(trace, jobs=tuple(jobs), filled=(*kept, *texts))


def on_assumed_gpu(trace: Trace) -> Trace:
    """The trace with the compute times of an assumed GPU, as there is no run whose GPUs count."""
    return with_compute_times(trace, CalibratedModels(None), "; a run takes those of its GPUs")
