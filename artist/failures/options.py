"""When jobs write checkpoints, as a scenario or a file of failures says it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from artist.io.documents import Document
from artist.io.fields import Duration, NonNegative


class CheckpointOptions(Document):
    """How often a job saves its state, and how long it stands still for it.

    `auto` is the interval that loses least, for the failures that hit the job's GPUs; it is
    `daly`.
    """

    interval_s: Duration | Literal["auto", "daly", "young"] = Field(
        description="work between two checkpoints, seconds; or auto, daly or young: the best "
        "interval for the failures of the run (artist/failures/optimum.py)"
    )
    # Dally, section IV-B, calls saving and restoring a job negligible, as restart_s.
    cost_s: NonNegative = Field(
        default=0.0, description="how long a job stands still to write one, seconds"
    )
