"""Options of Pollux."""

from __future__ import annotations

from pydantic import Field

from artist.io.documents import NonNegative
from artist.policies.elastic.options import RoundOptions


class PolluxOptions(RoundOptions):
    """Options of Pollux. Defaults are those of its authors' program (pollux.py, simulator.py)."""

    power: float = Field(
        default=-1.0, ge=-10, le=1, description="p of the power mean: the lower, the fairer"
    )
    delay_s: NonNegative = Field(default=30.0, description="assumed cost of a restart, seconds")
    one_distributed: bool = Field(
        default=True, description="at most one multi-machine job on each machine"
    )
    most_machines: int = Field(default=16, ge=1, description="most machines of one job")
    explore: bool = Field(
        default=True, description="a job gets at most twice as many GPUs as it ever had"
    )
    adapt_batch: bool = Field(
        default=True, description="whether jobs train with the batch of the largest goodput"
    )
    # Ours: see docs/decisions/0034-elastic-jobs.md.
    neighbours: bool = Field(
        default=False,
        description="whether goodput on several machines includes what neighbours on links cost",
    )
    budget: int = Field(
        default=100, ge=0, le=100_000, description="steps of the search for better GPUs"
    )
