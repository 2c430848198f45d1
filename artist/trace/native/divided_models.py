"""Names of models with axes: those that a job states, or published ones."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from artist.errors import ConfigError, TraceError, shortened
from artist.io.documents import validate
from artist.trace.native.formats import AXES
from artist.trace.native.table import Table
from artist.trace.native.trace import Trace
from artist.workload.architectures.operators import Role
from artist.workload.division.job_parallelism import PUBLISHED, JobParallelism, says_axes, words
from artist.workload.models import canonical, is_graph, is_spelled, operators, settings


def divided_model(model: str, chosen: Mapping[str, str]) -> str:
    """A model's canonical name with these settings in place of its own.

    Raises:
        UnknownNameError: an unknown model, or settings that do not go together.
    """
    name, _, text = model.partition("@")
    own = dict(part.split("=", 1) for part in text.split(",") if "=" in part)
    pairs = {**own, **chosen}
    return canonical(f"{name}@{','.join(f'{key}={value}' for key, value in pairs.items())}")


def with_axes_of_cells(trace: Trace, table: Table) -> Trace:
    """The trace whose jobs have the axes of the column `parallelism` of its table.

    Raises:
        TraceError: a cell is not KEY=VALUE pairs, or does not suit the model.
    """
    cells = dict(zip(table.numbers, table.texts_or(AXES, ""), strict=True))
    made: dict[tuple[str, str], str] = {}
    jobs = list(trace.jobs)
    for index, (job, number) in enumerate(zip(jobs, trace.numbers, strict=True)):
        model, text = job.model, cells[number]
        if text and is_graph(model):
            raise TraceError(
                f"{trace.place(index)}: {AXES} {shortened(text)} for model {shortened(model)}, "
                "whose traces are of single GPUs; leave the cell empty"
            )
        if not text or not is_spelled(model):
            continue
        if (model, text) not in made:
            try:
                chosen = validate(words(text), JobParallelism, AXES)
                made[model, text] = divided_model(model, chosen.settings())
            except ValueError:
                row = table.numbers.index(number)
                raise table.error(row, AXES, "pairs such as tensor=8,pipeline=4") from None
            except ConfigError as cause:
                raise TraceError(f"{trace.place(index)}: {cause}") from cause
        jobs[index] = replace(job, model=made[model, text])
    return replace(trace, jobs=tuple(jobs))


@cache
def published_model(model: str, gpus: int) -> str | None:
    """A model's name with its published axes, fitted to this number of GPUs; None if it has none.

    The tensor group is halved until it divides the gang. The pipeline then has the most stages, at
    most as many as published, that divide the rest.
    """
    name = canonical(model).partition("@")[0]
    if name not in PUBLISHED or says_axes(model):
        return None
    row = PUBLISHED[name]
    tensor = math.gcd(row.tensor, gpus)  # both powers of two
    pipeline = max(x for x in range(1, row.pipeline + 1) if gpus // tensor % x == 0)
    expert = math.gcd(row.expert, gpus // pipeline)
    if tensor * pipeline * expert == 1:
        return None
    chosen: dict[str, Any] = {"tensor": tensor, "pipeline": pipeline, "expert": expert}
    if "batch=" not in model:
        chosen |= {"batch": row.batch}
        if row.sequence is not None and "sequence=" not in model:
            chosen |= {"sequence": row.sequence}
    if "microbatches=" not in model:
        batch = settings(model).batch if "batch=" in model else row.batch
        chosen |= {"microbatches": batch}
    return divided_model(model, {key: str(value) for key, value in chosen.items()})


def is_as_published(model: str) -> bool:
    """Whether the axes of `published_model` are as large as published."""
    row, chosen = PUBLISHED[canonical(model).partition("@")[0]], settings(model)
    axes = chosen.tensor, chosen.pipeline, max(chosen.expert, 1)
    return axes == (row.tensor, row.pipeline, row.expert)


def takes_axes(model: str) -> bool:
    """Whether a model of the catalogue can be divided along axes (a transformer)."""
    return any(operator.role is Role.ROW for operator in operators(model))
