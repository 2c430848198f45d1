"""Options of Gavel."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from artist.contract import Options
from artist.io.documents import Lease, NonNegative


class GavelOptions(Options):
    """Options of Gavel. Defaults are those of its authors' program."""

    # The paper's policies: las is the one of most of its figures.
    objective: Literal["las", "ftf", "makespan", "fifo", "cost"] = Field(
        default="las", description="what shares of time are computed for"
    )
    # The paper compares each policy with the same one that takes all kinds for equally fast.
    aware: bool = Field(default=True, description="whether speeds on kinds of GPUs count")
    # OSDI 2020, section 7.1: rounds of six minutes.
    round_s: Lease = Field(default=360.0, description="length of a round, seconds")
    # scheduler.py of the program: minimum_time_between_allocation_resets.
    reset_s: NonNegative = Field(
        default=1920.0, description="least time between two computations of shares, seconds"
    )
    # interior_point.py: where the authors' solver ends.
    optimum: Literal["inner", "vertex"] = Field(
        default="inner",
        description="which optimum las and ftf take without space sharing; at the vertex, jobs do "
        "most",
    )
    # OSDI 2020, section 3.1: policies with and without space sharing.
    space_sharing: bool = Field(
        default=False, description="whether two jobs with the same number of GPUs may share them"
    )

    @model_validator(mode="after")
    def _shares_by_speed(self) -> Self:
        # The authors' program has no such policy: which pairs pay depends on the kind.
        if self.space_sharing and not self.aware:
            raise ValueError("space_sharing needs aware=true: pairs are chosen by their speeds")
        return self
