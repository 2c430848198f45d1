"""Applies a scenario's settings of models to the jobs of a trace: axes of parallelism, and others.

The axes of a job are its own, the scenario's, or published ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Literal, NamedTuple

from artist.errors import ConfigError, DivisionError, TraceError, shortened
from artist.trace.native.trace import Trace
from artist.units import counted
from artist.workload.division.job_parallelism import JobParallelism, may_be_divided, says_axes
from artist.workload.division.spread import spread_text
from artist.workload.division.staged import sizes_of
from artist.workload.job import Job
from artist.workload.layers import Workload


def with_axes(trace: Trace, chosen: JobParallelism | Literal["published", "none"]) -> Trace:
    """The trace whose large models have axes. Models must be known.

    A job that states its axes keeps them. Only transformers have axes.

    Raises:
        TraceError: axes that do not fit a model or do not multiply to the GPUs of a job.
    """
    if not any(
        "@" in name or may_be_divided(name, chosen) for name in {x.model for x in trace.jobs}
    ):
        return trace
    from artist.trace.native.divided_models import (
        divided_model,
        is_as_published,
        published_model,
        takes_axes,
    )
    from artist.workload.models import is_graph

    def given(job: Job) -> str | None:
        assert not isinstance(chosen, str)
        if is_graph(job.model):
            raise ConfigError(
                f"parallelism of the scenario for model {shortened(job.model)}, whose traces are "
                "of single GPUs; give axes to other jobs in column parallelism"
            )
        if says_axes(job.model) or not takes_axes(job.model):
            return None
        return divided_model(job.model, chosen.settings())

    def published(job: Job) -> str | None:
        return published_model(job.model, job.gpus)

    if chosen == "none":
        filled: Counter[str] = Counter()
    else:
        trace, filled = with_models(trace, published if chosen == "published" else given)
    trace, spread = _checked(trace)

    def source(model: str) -> str:
        if chosen != "published":
            return "the scenario's"
        exactly = is_as_published(model)
        return "published for the model" if exactly else "smaller than published"

    texts = tuple(
        f"parallelism of {counted(count, 'job')}, {source(model)}: {model}"
        for model, count in filled.items()
    )
    texts += tuple(f"of {counted(count, 'job')}, {told}" for told, count in spread.items())
    return replace(trace, filled=(*trace.filled, *texts)) if texts else trace


def trained_as(trace: Trace, settings: str) -> Trace:
    """The trace with settings such as `gpu=v100,precision=bf16` for models that state no others.

    Models must be known. Folders of execution traces do not change, nor do the compute times of the
    trace: the settings only change the share that communication adds to these.

    Raises:
        TraceError: a model of the trace has no such setting, or none of this value.
    """
    from artist.workload.models import is_graph, with_settings

    @cache
    def named(model: str) -> str | None:
        try:
            return None if is_graph(model) else with_settings(model, settings)
        except ConfigError as cause:
            raise ConfigError(f"trained_as {shortened(settings)}: {cause}") from cause

    return with_models(trace, lambda job: named(job.model))[0]


def with_models(trace: Trace, model_of: Callable[[Job], str | None]) -> tuple[Trace, Counter[str]]:
    """The trace with other models where `model_of` gives one, and how many jobs have each.

    Raises:
        TraceError: `model_of` refused a job; the message begins with its place.
    """
    filled: Counter[str] = Counter()
    jobs = list(trace.jobs)
    for index, job in enumerate(jobs):
        try:
            model = model_of(job)
        except ConfigError as cause:
            raise _at(trace, index, cause) from cause
        if model is not None:
            filled[model] += 1
            jobs[index] = replace(job, model=model)
    return (replace(trace, jobs=tuple(jobs)), filled) if filled else (trace, filled)


def _checked(trace: Trace) -> tuple[Trace, Counter[str]]:
    """The trace with the sizes of tensor groups, after a check that axes fit the GPUs of each job.

    Also counts the jobs in which experts share GPUs, although the model does not say how, by how
    they are spread.
    """
    from artist.workload.models import is_graph, workload

    known: dict[tuple[str, int, int, int], _Division] = {}
    spread: Counter[str] = Counter()
    jobs = list(trace.jobs)
    for index, job in enumerate(jobs):
        key = (job.model, job.gpus, job.gpus_min, job.gpus_max)
        if key not in known:
            try:
                graph = is_graph(job.model)
                known[key] = _Division() if graph else _division(workload(job.model), key[1:])
            except (ConfigError, DivisionError) as cause:
                raise _at(trace, index, cause) from cause
        if known[key].tensor > 1:
            jobs[index] = replace(job, tensor=known[key].tensor)
        if known[key].spread:
            spread[f"{known[key].spread}: {job.model}"] += 1
    checked = any(division.tensor > 1 for division in known.values())
    return (replace(trace, jobs=tuple(jobs)) if checked else trace), spread


class _Division(NamedTuple):
    """The GPUs of a tensor group, and how experts share GPUs, in words if any do (`spread.py`)."""

    tensor: int = 1
    spread: str = ""


def _division(divided: Workload, sizes: tuple[int, ...]) -> _Division:
    """How a workload that runs on this many GPUs is divided."""
    from artist.workload.divide import axes_of

    axes = axes_of(divided)
    for gpus in dict.fromkeys(sizes):
        sizes_of(axes, gpus)
    tensor = 1 if divided.staged is None else axes.tensor
    return _Division(tensor, spread_text(axes, sizes[0]))


def _at(trace: Trace, index: int, cause: Exception) -> TraceError:
    return TraceError(f"{trace.place(index)}: job {trace.jobs[index].id!r}: {cause}")
