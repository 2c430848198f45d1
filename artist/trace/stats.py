"""Facts about a trace: its statistics (`artist trace stats`), its reader's reports, and warnings.

Warnings are about what looks wrong although it can be read (`artist trace validate`).
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import TypeAlias

import numpy as np

from artist.estimates.calibration import CalibratedModels
from artist.estimates.latency_service import alone_step_s
from artist.trace.compute_times import on_assumed_gpu
from artist.trace.foreign.model_names import known_model
from artist.trace.native.formats import OWN_FORMATS, TIMES
from artist.trace.native.mapping import SAME
from artist.trace.native.trace import Trace
from artist.trace.native.untimed import untimed
from artist.units import SHORTEST_LEASE_S
from artist.workload.job import Job
from artist.workload.models import is_graph, workload

Value: TypeAlias = (
    str | int | float | list[str] | dict[str, int] | dict[str, float] | dict[str, str] | None
)

QUANTILES = (5, 25, 50, 75, 95, 99)
_S_PER_HOUR = 3600

STATED_LONGER = 100
"""A stated step may be at most this many times as long as the catalogue's.

A wrong unit is a factor of 60 or 1000.
"""

OTHERWISE = 1000
"""The limit for steps that artist invented, and for steps that are shorter than the catalogue's.

An invented step of 1 s is up to 180 times that of `alexnet`. Steps of Dally's workloads are up to
470 times shorter than the catalogue's.
"""

MUCH_SCALED = 2
"""Communication this many times shorter or longer than the model's is reported.

Neighbouring precisions, batches and generations of GPUs differ by about this factor, kernels less.
"""

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
    scaled = "" if trace.path is None else scaled_communication(trace, CalibratedModels(None))
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
        "warnings": [*trace.warnings, *warnings(trace), *([scaled] if scaled else [])],
    }


def scaled_communication(trace: Trace, models: CalibratedModels) -> str:
    """A sentence on the job whose communication is scaled most; empty if none is scaled much.

    An iteration takes `compute_s` x (1 + comm ratio), and the ratio is that of the model (Dally,
    section IV-C). So a job's communication is scaled by the ratio of its `compute_s` to the model's
    compute time. Jobs of one GPU, jobs that state no step time, models that a calibration has
    scaled, and steps that `warnings` reports are left out.

    Raises:
        ConfigError: a model cannot be timed on this GPU.
    """

    @cache
    def known_s(model: str) -> float:
        if not step_s(model) or models.scales(model):
            return 0.0
        return alone_step_s(models.workload(model))

    if trace.recorded:
        return ""
    times: dict[int, float] = {}
    for index, job in enumerate(trace.jobs):
        if job.gpus_max == 1 or job.goodput is not None or _is_odd(trace, job):
            continue
        ratio = job.compute_s / known if (known := known_s(job.model)) else 1.0
        if max(ratio, 1 / ratio) >= MUCH_SCALED:
            times[index] = ratio
    if not times:
        return ""
    worst = max(times, key=lambda index: max(times[index], 1 / times[index]))
    job, ratio = trace.jobs[worst], times[worst]
    others = f" (the worst of {len(times):,})" if len(times) > 1 else ""
    longer = f"{_plain(max(ratio, 1 / ratio))} times {'longer' if ratio > 1 else 'shorter'}"
    return (
        f"{trace.place(worst)}: job {job.id!r}{others} has steps of {job.compute_s:.3g} s, and "
        f"{job.model} takes {known_s(job.model):.3g} s {models.timed_on(job.model)}, so without a "
        f"calibration of the model its communication counts as {longer} too; "
        "name the GPU and batch of these steps in the model (gpu=, batch=), correct compute_s, or "
        "keep the model's bytes with --set communication=absolute"
    )


def _is_odd(trace: Trace, job: Job) -> bool:
    """Whether a step is so far from the catalogue's that its unit or model may be wrong."""
    longer = OTHERWISE if trace.recorded else STATED_LONGER
    known_s = step_s(job.model)
    return bool(known_s) and not known_s / OTHERWISE <= job.compute_s <= longer * known_s


def warnings(trace: Trace) -> list[str]:
    """What looks wrong in a trace that can be read: steps and jobs of implausible lengths.

    There is a sentence for each kind, and one per model for steps, with the first such job and the
    number of them. The trace runs nevertheless.
    """
    trace = on_assumed_gpu(trace)
    kinds: dict[str, list[int]] = {}
    for index, job in enumerate(trace.jobs):
        if job.ideal_s > LONGEST_JOB_S:
            kinds.setdefault("longer than a year", []).append(index)
        if job.ideal_s < SHORTEST_JOB_S:
            kinds.setdefault("shorter than a millisecond", []).append(index)
        if _is_odd(trace, job):
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
