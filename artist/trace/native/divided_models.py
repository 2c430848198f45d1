"""Names of models with the axes of a job: those that it says, or those that were published."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Any

from artist.workload.architectures.operators import Role
from artist.workload.division.job_parallelism import PUBLISHED, says_axes
from artist.workload.models import canonical, operators, settings


def divided_model(model: str, chosen: Mapping[str, str]) -> str:
    """A model's canonical name with these settings in place of its own.

    Raises:
        UnknownNameError: an unknown model, or settings that do not go together.
    """
    name, _, text = model.partition("@")
    own = dict(part.split("=", 1) for part in text.split(",") if "=" in part)
    pairs = {**own, **chosen}
    return canonical(f"{name}@{','.join(f'{key}={value}' for key, value in pairs.items())}")


@cache
def published_model(model: str, gpus: int) -> str | None:
    """A model's name with its published axes, fitted to so many GPUs; None if there are none.

    Stages are halved until the gang divides, then tensor groups.
    """
    name = canonical(model).partition("@")[0]
    if name not in PUBLISHED or says_axes(model):
        return None
    row = PUBLISHED[name]
    tensor, pipeline = row.tensor, row.pipeline
    while gpus % (tensor * pipeline):
        tensor, pipeline = (tensor, pipeline // 2) if pipeline > 1 else (tensor // 2, 1)
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


def takes_axes(model: str) -> bool:
    """Whether a model of the catalogue can be divided along axes (a transformer)."""
    return any(operator.role is Role.ROW for operator in operators(model))
