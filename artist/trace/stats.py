"""Facts about a trace: its statistics (`artist trace stats`), what its reader reports, and what
looks wrong although it can be read (`artist trace validate`).
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import TypeAlias

import numpy as np

from artist.estimates.latency_service import alone_step_s
from artist.trace.compute_times import on_assumed_gpu
from artist.trace.foreign.model_names import known_model
from artist.trace.native.formats import OWN_FORMATS, TIMES
from artist.trace.native.mapping import SAME
from artist.trace.native.trace import Trace
from artist.trace.native.untimed import untimed
from artist.units import SHORTEST_LEASE_S
from artist.workload.models import is_graph, workload

Value: TypeAlias = (
    str | int | float | list[str] | dict[str, int] | dict[str, float] | dict[str, str] | None
)

QUANTILES = (5, 25, 50, 75, 95, 99)
_S_PER_HOUR = 3600

STATED_LONGER = 100
"""A stated step may be this many times as long as the catalogue's. A wrong unit is 1000 or 60."""

OTHERWISE = 1000
"""The same for steps that artist invented, as 1 s is up to 180 times the step of `alexnet`. And for
shorter steps, as those of Dally's workloads are up to 470 times shorter than the catalogue's."""

MUCH_SHORTER = 10
"""A median step that is more times shorter than the catalogue's deserves a word in `validate`."""

LONGEST_JOB_S = 365 * 86400
"""No published trace spans more than a year."""

SHORTEST_JOB_S = SHORTEST_LEASE_S


def stats(trace: Trace) -> dict[str, Value]:
    """Statistics of a trace. Their names end in their units.

    The ideal JCT of a job is iterations x compute time: no waiting, no communication.
    Percentiles are interpolated linearly.
    """
    trace = on_assumed_gpu(trace)
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
        "users": len({job.user for job in jobs} - {""}),
        "tenants": len({job.tenant for job in jobs} - {None}),
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
    if len(untimed(trace)) == len(trace.jobs):
        times = [name for name in times if SAME.get(name, name) != "compute_s"]
    units = {SAME.get(name, name): unit for name, unit in trace.units.items()}
    in_force = {name: units.pop(SAME.get(name, name), "s (default)") for name in times}
    return {**in_force, **units} or {"times": f"as the {trace.format} format says"}


def validate(trace: Trace) -> dict[str, Value]:
    """What the reader of a trace reports, and the names of models that the catalogue lacks."""
    units = _units(trace)
    trace = on_assumed_gpu(trace)
    return {
        "trace": trace.name,
        "format": trace.format,
        "jobs": len(trace.jobs),
        "units": units,
        "sha256": trace.digest,
        "models_unknown": [m for m in sorted({j.model for j in trace.jobs}) if not known_model(m)],
        "mapped": list(trace.mapped),
        "filled": list(trace.filled),
        "dropped": dict(trace.dropped),
        "warnings": [*trace.warnings, *warnings(trace), *_short_steps(trace)],
    }


def _short_steps(trace: Trace) -> list[str]:
    """A sentence if the steps that a trace states are much shorter than the catalogue's."""
    shorter = [known_s / job.compute_s for job in trace.jobs if (known_s := step_s(job.model))]
    if trace.recorded or not shorter or (times := np.median(shorter)) <= MUCH_SHORTER:
        return []
    return [
        f"the median step is {_plain(times)} times shorter than the catalogue's; without a "
        "calibration, communication weighs as much more"
    ]


def warnings(trace: Trace) -> list[str]:
    """What looks wrong in a trace that can be read: steps and jobs of odd lengths.

    There is a sentence for each kind, and one per model for steps, with the first such job and the
    number of them. The trace runs nevertheless.
    """
    trace = on_assumed_gpu(trace)
    longer = OTHERWISE if trace.recorded else STATED_LONGER
    kinds: dict[str, list[int]] = {}
    for index, job in enumerate(trace.jobs):
        known_s = step_s(job.model)
        if job.ideal_s > LONGEST_JOB_S:
            kinds.setdefault("longer than a year", []).append(index)
        if job.ideal_s < SHORTEST_JOB_S:
            kinds.setdefault("shorter than a millisecond", []).append(index)
        if known_s and not known_s / OTHERWISE <= job.compute_s <= longer * known_s:
            kinds.setdefault(f"step of {job.model}", []).append(index)
    return [_sentence(trace, kind, indices) for kind, indices in kinds.items()]


def _sentence(trace: Trace, kind: str, indices: list[int]) -> str:
    """The warning about all jobs of one kind, in the words of the first of them."""
    job = trace.jobs[indices[0]]
    start = f"{trace.place(indices[0])}: job {job.id!r}"
    others = f" (and {len(indices) - 1} more)" if len(indices) > 1 else ""
    if not kind.startswith("step"):
        return f"{start}{others} computes for {job.ideal_s:.3g} s, {kind}; check the units"
    known_s = step_s(job.model)
    ratio = job.compute_s / known_s
    times = f"{_plain(ratio)} times" if ratio >= 1 else f"1/{_plain(1 / ratio)} of"
    steps = (
        f"{start}{others} has steps of {job.compute_s:.3g} s, {times} the {known_s:.3g} s of the "
        f"catalogue's {job.model}"
    )
    if trace.recorded:
        return f"{steps}; communication will be overstated by as much; check the model"
    return f"{steps}; check the unit of compute_s and the model"


def _plain(times: float) -> str:
    return f"{times:,.0f}" if times >= 100 else f"{times:.3g}"


@cache
def step_s(model: str) -> float:
    """Compute time of a training step by the catalogue, in seconds; 0 if it lacks the model."""
    if not known_model(model) or is_graph(model):
        return 0.0
    return alone_step_s(workload(model))
