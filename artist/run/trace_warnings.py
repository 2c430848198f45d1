"""Warnings about a trace under a scenario, in sentences: bytes, memory and pipelines."""

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
    """The warning of `scaled_communication` about a trace under a scenario; empty if there is none.

    Recorded answers have their own compute times, so there is none about them. Jobs with goodput
    parameters count with the compute times of their table.
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
    """A sentence on the first job that no GPU of the cluster can hold; empty if there is none.

    An unknown kind counts as `ASSUMED_GPU`. Jobs on parts of GPUs are left out, and so are jobs
    about whose model no backend is asked.
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
    """A sentence on the first job whose pipeline has too few microbatches; empty without any."""
    if scenario.backend.partition(":")[0] in ("none", "recorded"):
        return ""
    from artist.run.waiting_stages import waiting_stages

    @cache
    def clause(model: str) -> str:
        words = waiting_stages(model)
        return words and f"{model}: {words}"

    return _first(trace, lambda job: clause(job.model))


def _first(trace: Trace, clause: Callable[[Job], str]) -> str:
    """The clause about the first job that has one, the job's place, and how many others have one.

    Jobs with goodput parameters or on parts of GPUs are left out: no backend is asked about them.
    """
    clauses = {
        index: clause(job)
        for index, job in enumerate(trace.jobs)
        if job.goodput is None and not job.is_share
    }
    found = [index for index, words in clauses.items() if words]
    if not found:
        return ""
    others = f" (and {len(found) - 1:,} more)" if len(found) > 1 else ""
    return f"{trace.place(found[0])}: job {trace.jobs[found[0]].id!r}{others}: {clauses[found[0]]}"
