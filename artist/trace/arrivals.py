"""Replacing a trace's arrival times: `--arrivals trace|batch|poisson:JOBS_PER_HOUR`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from artist.errors import ConfigError
from artist.io.reading import as_float
from artist.rng import stream
from artist.trace.native.trace import Trace
from artist.units import MAX_TIME_S

_S_PER_HOUR = 3600


def with_arrivals(trace: Trace, spec: str, seed: int) -> Trace:
    """The trace with other arrival times; the jobs keep their order.

    `spec` is `trace` (no change), `batch` (all jobs arrive at 0) or `poisson:R` (exponential
    gaps, R jobs per hour on average).

    Raises:
        ConfigError: `spec` is none of these, or arrivals would exceed the engine's clock.
    """
    if spec == "trace":
        return trace
    if spec == "batch":
        arrivals_s = [0.0] * len(trace.jobs)
    else:
        mean_gap_s = _S_PER_HOUR / _jobs_per_hour(spec)
        gaps_s = stream(seed, "trace.arrivals").exponential(mean_gap_s, len(trace.jobs))
        arrivals_s = np.cumsum(gaps_s).tolist()
        if arrivals_s[-1] > MAX_TIME_S:
            raise ConfigError(
                f"--arrivals {spec}: {len(trace.jobs)} jobs would arrive over {arrivals_s[-1]:.1e} "
                f"s, expected at most {MAX_TIME_S:.0e}; raise the rate or use fewer (--jobs)"
            )
    jobs = (replace(job, arrival_s=s) for job, s in zip(trace.jobs, arrivals_s, strict=True))
    return replace(trace, jobs=tuple(jobs))


def _jobs_per_hour(spec: str) -> float:
    """The rate in `poisson:R`."""
    kind, _, rate = spec.partition(":")
    jobs_per_hour = as_float(rate)
    # At least one job in a million hours: then a mean gap, 3.6e9 s, is below MAX_TIME_S, 4e9 s.
    if kind != "poisson" or not 1e-6 <= jobs_per_hour <= 1e9:
        raise ConfigError(
            f"--arrivals is {spec!r}, expected trace, batch or poisson:JOBS_PER_HOUR "
            "(from 1e-6 to 1e9); correct it"
        )
    return jobs_per_hour
