"""Options of Sia."""

from __future__ import annotations

from pydantic import Field, field_validator

from artist.io.documents import Positive
from artist.policies.elastic.options import RoundOptions


class SiaOptions(RoundOptions):
    """Options of Sia. Defaults are those of its authors' program (simulator_config.py, sia.py)."""

    power: float = Field(
        default=-0.5, ge=-10, le=1, description="p of the values: the lower, the fairer; not 0"
    )
    unallocated: Positive = Field(
        default=1.1, description="lambda: what a job without GPUs adds to the objective"
    )
    delay_s: Positive = Field(
        default=30.0, description="assumed cost of a restart where restart_s is 0, seconds"
    )
    explore: bool = Field(
        default=True, description="a job gets at most twice as many GPUs as it ever had"
    )
    # Ours, as in Pollux.
    neighbours: bool = Field(
        default=False,
        description="whether goodput on several machines includes what neighbours on links cost",
    )
    gap: float = Field(
        default=1e-4,
        ge=0,
        le=0.1,
        description="how far the objective may fall short of the best, as a share of it",
    )

    @field_validator("power")
    @classmethod
    def _not_zero(cls, power: float) -> float:
        if not power:
            raise ValueError("expected a power below or above 0")
        return power
