"""What the first start of a job costs: the setting `first_start_s`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated, Final, Literal

from pydantic import BeforeValidator

from artist.io.documents import NonNegative
from artist.workload.job import Job

AS_RESTART: Final = "restart"


def _seconds_or_word(value: object) -> object:
    """Refuse other values in one sentence; pydantic would report each part of the union."""
    try:
        good = value in (None, AS_RESTART) or 0 <= float(str(value)) < float("inf")
    except ValueError:
        good = False
    if not good:
        raise ValueError(f"expected seconds, or {AS_RESTART} for as many as the job's restart")
    return value


FirstStart = Annotated[NonNegative | Literal["restart"] | None, BeforeValidator(_seconds_or_word)]


def with_first_starts(jobs: Iterable[Job], cost: float | Literal["restart"]) -> tuple[Job, ...]:
    """The jobs with this cost of a first start; with `restart`, each with its own `restart_s`."""
    return tuple(
        replace(job, first_start_s=job.restart_s if cost == AS_RESTART else cost) for job in jobs
    )
