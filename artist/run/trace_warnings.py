"""What a scenario makes questionable about its trace, in sentences: bytes, memory and pipelines."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from artist.config import Scenario
from artist.run.hardware import (
    build_calibration,
    build_cluster,
    build_fabric,
    kinds_of,
    models_of_run,
)
from artist.run.traces import elastic
from artist.trace.native.trace import Trace
from artist.workload.job import Job


def scaled_communication_of(scenario: Scenario, trace: Trace) -> str:
    """The sentence of `scaled_communication` about a trace that a scenario runs; else empty.

    Recorded answers hold for compute times of their own. Jobs of models with goodput parameters
    take the table's.
    """
    if scenario.communication == "absolute":
        return ""
    if scenario.backend.partition(":")[0] in ("none", "recorded"):
        return ""
    from artist.trace.stats import scaled_communication

    fabric = build_fabric(scenario)
    trace = elastic(scenario, build_cluster(scenario, fabric), trace)
    models = models_of_run(scenario, fabric, build_calibration(scenario, fabric))
    return scaled_communication(trace, models)


def too_large_for_gpus(scenario: Scenario, trace: Trace) -> str:
    """A sentence on the first job that no GPU of the cluster can hold; else empty.

    A kind that is not known counts as `ASSUMED_GPU`. Left out are jobs on parts of GPUs, and jobs
    of which no question is asked about their model.
    """
    if scenario.backend.partition(":")[0] in ("none", "recorded"):
        return ""
    from artist.run.training_memory import does_not_fit
    from artist.workload.gpus import gpu_of
    from artist.workload.models import is_graph

    machine = build_fabric(scenario).machine
    kinds = kinds_of(scenario) or {machine.kind if machine and machine.kind else ""}

    @cache
    def clause(model: str, gpus: int, accepted: tuple[str, ...]) -> str:
        if is_graph(model):
            return ""
        return does_not_fit(model, gpus, {gpu_of((kind,)) for kind in accepted or kinds})

    return _first(trace, lambda job: clause(job.model, job.gpus, job.gpu_kinds))


def too_few_microbatches(scenario: Scenario, trace: Trace) -> str:
    """A sentence on the first job whose pipeline has too few microbatches; else empty."""
    if scenario.backend.partition(":")[0] in ("none", "recorded"):
        return ""
    from artist.run.waiting_stages import waiting_stages

    @cache
    def clause(model: str) -> str:
        told = waiting_stages(model)
        return told and f"{model}: {told}"

    return _first(trace, lambda job: clause(job.model))


def _first(trace: Trace, clause: Callable[[Job], str]) -> str:
    """The first clause about a job, its place, and how many more have one.

    No question is asked about the models of jobs with goodput parameters, or on parts of GPUs.
    """
    told = {
        index: clause(job)
        for index, job in enumerate(trace.jobs)
        if job.goodput is None and not job.is_share
    }
    found = [index for index, words in told.items() if words]
    if not found:
        return ""
    others = f" (and {len(found) - 1:,} more)" if len(found) > 1 else ""
    return f"{trace.place(found[0])}: job {trace.jobs[found[0]].id!r}{others}: {told[found[0]]}"
