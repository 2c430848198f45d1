"""Facts about a trace: its statistics (`artist trace stats`) and what its reader reports
(`artist trace validate`).
"""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias

import numpy as np

from artist.trace.doubts import doubts
from artist.trace.foreign.fill import known_model
from artist.trace.native.formats import OWN_FORMATS, TIMES
from artist.trace.native.mapping import SAME
from artist.trace.native.trace import Trace

Value: TypeAlias = (
    str | int | float | list[str] | dict[str, int] | dict[str, float] | dict[str, str] | None
)

QUANTILES = (5, 25, 50, 75, 95, 99)
_S_PER_HOUR = 3600


def stats(trace: Trace) -> dict[str, Value]:
    """Statistics of a trace. Their names end in their units.

    The ideal JCT of a job is iterations x compute time: no waiting, no communication.
    Percentiles are interpolated linearly.
    """
    jobs = trace.jobs
    gpus = np.array([job.gpus for job in jobs])
    ideal_s = np.array([job.ideal_s for job in jobs])
    arrivals_s = [job.arrival_s for job in jobs]
    gpu_hours = gpus * ideal_s / _S_PER_HOUR
    demands = np.unique(gpus).tolist()
    return {
        "trace": trace.name,
        "format": trace.format,
        "jobs": len(jobs),
        "mapped": list(trace.mapped),
        "filled": list(trace.filled),
        "dropped": dict(trace.dropped),
        "users": len({job.user for job in jobs}),
        "gpus_min": int(gpus.min()),
        "gpus_median": float(np.median(gpus)),
        "gpus_max": int(gpus.max()),
        "jobs_by_gpus": {str(d): int((gpus == d).sum()) for d in demands},
        "jobs_by_model": dict(Counter(job.model for job in jobs).most_common()),
        "gpu_hours": float(gpu_hours.sum()),
        "gpu_hours_by_gpus": {str(d): float(gpu_hours[gpus == d].sum()) for d in demands},
        **{f"ideal_jct_p{q}_s": float(np.percentile(ideal_s, q)) for q in QUANTILES},
        "arrival_first_s": min(arrivals_s),
        "arrival_last_s": max(arrivals_s),
        "arrival_span_s": max(arrivals_s) - min(arrivals_s),
    }


def _units(trace: Trace) -> dict[str, str]:
    """The unit of each column of times, by the names of the format."""
    format_ = next((one for one in OWN_FORMATS if one.id == trace.format), None)
    times = [name for name in format_.required if name in TIMES] if format_ else []
    units = {SAME.get(name, name): unit for name, unit in trace.units.items()}
    in_force = {name: units.pop(SAME.get(name, name), "s (default)") for name in times}
    return {**in_force, **units} or {"times": f"as the {trace.format} format says"}


def validate(trace: Trace) -> dict[str, Value]:
    """What the reader of a trace reports, and the names of models that the catalogue lacks."""
    return {
        "trace": trace.name,
        "format": trace.format,
        "jobs": len(trace.jobs),
        "units": _units(trace),
        "sha256": trace.digest,
        "models_unknown": [m for m in sorted({j.model for j in trace.jobs}) if not known_model(m)],
        "mapped": list(trace.mapped),
        "filled": list(trace.filled),
        "dropped": dict(trace.dropped),
        "warnings": [*trace.warnings, *doubts(trace)],
    }
