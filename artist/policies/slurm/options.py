"""Options of Slurm."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from artist.contract import Options
from artist.io.documents import NonNegative
from artist.slurm.facts import SlurmFacts


class SlurmOptions(Options):
    """Options of Slurm. What slurm.conf says is in the section `slurm` of the cluster file."""

    facts: SlurmFacts | None = Field(
        default=None, description="in place of the section slurm of the cluster file"
    )
    not_modelled: Literal["refuse", "ignore"] = Field(
        default="refuse", description="what becomes of settings that the policy does not model"
    )
    kill: bool = Field(default=True, description="cut jobs at their time limits, as Slurm does")
    # Traces begin at 0. Reservations of Slurm do not, and backfill rounds Unix times.
    epoch_s: int | None = Field(
        default=None, description="Unix time at which the trace begins, seconds; for reservations"
    )
    calc_phase_s: NonNegative = Field(
        default=0.0, description="when, after the first arrival, PriorityCalcPeriod first strikes"
    )
