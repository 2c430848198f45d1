"""Replacing a trace's arrival times: `--arrivals trace|batch|poisson:JOBS_PER_HOUR`."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from artist.errors import ConfigError
from artist.rng import stream
from artist.trace.native.trace import Trace

_S_PER_HOUR = 3600


def with_arrivals(trace: Trace, spec: str, seed: int) -> Trace:
    """The trace with other arrivals; the jobs keep their order.

    `trace` leaves them, `batch` puts all at 0, `poisson:R` draws exponential
    gaps for R jobs per hour.

    Raises:
        ConfigError: `spec` is none of these.
    """
    if spec == "trace":
        return trace
    if spec == "batch":
        arrivals_s = [0.0] * len(trace.jobs)
    else:
        mean_gap_s = _S_PER_HOUR / _jobs_per_hour(spec)
        gaps_s = stream(seed, "trace.arrivals").exponential(mean_gap_s, len(trace.jobs))
        arrivals_s = np.cumsum(gaps_s).tolist()
    jobs = (replace(job, arrival_s=s) for job, s in zip(trace.jobs, arrivals_s, strict=True))
    return replace(trace, jobs=tuple(jobs))


def _jobs_per_hour(spec: str) -> float:
    kind, _, rate = spec.partition(":")
    try:
        jobs_per_hour = float(rate)
    except ValueError:
        jobs_per_hour = math.nan
    # A job in a million hours at the least keeps any trace within MAX_TIME_S.
    if kind != "poisson" or not 1e-6 <= jobs_per_hour <= 1e9:
        raise ConfigError(
            f"--arrivals is {spec!r}, expected trace, batch or poisson:JOBS_PER_HOUR "
            "(from 1e-6 to 1e9); correct it"
        )
    return jobs_per_hour
