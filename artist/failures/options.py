"""When jobs write checkpoints, as a scenario or a file of failures says it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from artist.io.documents import Document, Duration, NonNegative

BEST = ("auto", "daly", "young")
"""Words for the best interval."""

SHORTEST_S = 1e-9
"""A tick of the engine's clock."""


def _seconds_or_word(value: object) -> object:
    """Refuse what is neither in one sentence; pydantic would speak of the parts of a union."""
    try:
        good = value in BEST or float(str(value)) >= SHORTEST_S
    except ValueError:
        good = False
    if not good:
        raise ValueError(f"expected seconds above 0, {', '.join(BEST[:-1])} or {BEST[-1]}")
    return value


class CheckpointOptions(Document):
    """How often a job saves its state, and how long it stands still for it.

    `auto` is the interval that loses least, for the failures that hit the job's GPUs; it is
    `daly`.
    """

    interval_s: Annotated[
        Duration | Literal["auto", "daly", "young"], BeforeValidator(_seconds_or_word)
    ] = Field(
        description="work between two checkpoints, seconds; or auto, daly or young: the best "
        "interval for the failures of the run (artist/failures/optimum.py)"
    )
    # Dally, section IV-B, calls saving and restoring a job negligible, as restart_s.
    cost_s: NonNegative = Field(
        default=0.0, description="how long a job stands still to write one, seconds"
    )
