"""What looks wrong in a trace that can be read: steps and jobs of odd lengths.

They are warnings of `artist trace validate`; the trace runs nevertheless.
"""

from __future__ import annotations

from functools import cache

from artist.trace.foreign.fill import known_model
from artist.trace.native.trace import Trace
from artist.units import SHORTEST_LEASE_S
from artist.workload.models import workload

STATED_LONGER = 100
"""A stated step may be this many times as long as the catalogue's. A wrong unit is 1000 or 60."""

OTHERWISE = 1000
"""The same for steps that artist invented, as 1 s is up to 180 times the step of `alexnet`. And for
shorter steps, as those of Dally's workloads are up to 470 times shorter than the catalogue's."""

LONGEST_JOB_S = 365 * 86400
"""No published trace spans more than a year."""

SHORTEST_JOB_S = SHORTEST_LEASE_S


def doubts(trace: Trace) -> list[str]:
    """What looks wrong: a sentence for each kind, with the first such job and the number of them.

    Steps have a sentence per model.
    """
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
    job = trace.jobs[indices[0]]
    start = f"{trace.place(indices[0])}: job {job.id!r}"
    others = f" (and {len(indices) - 1} more)" if len(indices) > 1 else ""
    if not kind.startswith("step"):
        return f"{start}{others} computes for {job.ideal_s:.3g} s, {kind}; check the units"
    known_s = step_s(job.model)
    steps = (
        f"{start}{others} has steps of {job.compute_s:.3g} s, {job.compute_s / known_s:,.3g} x the "
        f"{known_s:.3g} s of the catalogue's {job.model}"
    )
    if trace.recorded:
        return f"{steps}; communication will be overstated by as much; check the model"
    return f"{steps}; check the unit of compute_s and the model"


@cache
def step_s(model: str) -> float:
    """Compute time of a training step by the catalogue, in seconds; 0 if it lacks the model."""
    if not known_model(model):
        return 0.0
    phases = (
        phase
        for layer in workload(model).layers
        for phase in (layer.forward, layer.input_grad, layer.weight_grad)
    )
    return sum(phase.compute_us for phase in phases) / 1e6
