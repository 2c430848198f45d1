"""Options of Dally."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from artist.io.documents import NonNegative, Positive
from artist.policies.options import LeaseOptions, SharingOptions


class DallyOptions(LeaseOptions, SharingOptions):
    """Options of Dally and its variants."""

    timers: Literal["auto", "manual", "none", "unbounded"] = Field(
        default="auto",
        description="auto: Algorithm 2; manual: fixed; none: never wait; unbounded: wait forever",
    )
    # Section IV-B2: 12 hours for the machine, another 12 (24 in total) for the rack.
    machine_timer_s: NonNegative = Field(default=12 * 3600.0, description="wait for a machine")
    rack_timer_s: NonNegative = Field(default=24 * 3600.0, description="wait for a rack, in total")
    # The history limit of the original simulator. The Dally paper has a window by age (IV-B3).
    history_s: Positive = Field(default=48 * 3600.0, description="age limit of recorded waits")
    # Section IV-B3: "adding two sample standard deviations".
    deviations: NonNegative = Field(default=2.0, description="deviations added to the mean wait")
    # The Dally paper has neither floors nor caps. The original simulator has both
    # (validation/original/policies.py).
    floors_s: tuple[float, float] | None = Field(
        default=None,
        description="least tuned timers: machine, rack; if not given, those of the policy",
    )
    caps_s: tuple[float, float] | None = Field(
        default=None,
        description="largest tuned timers: machine, rack; if not given, those of the policy",
    )
    # Section IV-B3: the sample's. The original simulator takes the population's.
    deviation: Literal["sample", "population"] = Field(
        default="sample", description="which standard deviation a tuned timer adds"
    )
    # Section IV-B3 discards "values (utilized in average calculation) that exceed the specified
    # history time limit". Values of what, it leaves open. The original simulator means their age.
    forgets: Literal["age", "length"] = Field(
        default="age",
        description="which recorded waits tuning leaves out: those recorded longer than history_s "
        "ago, or those that are longer than it",
    )
    # Section IV-B1 leaves 0/0 open. As in the original simulator.
    never_ran: Literal["first", "last"] = Field(
        default="first",
        description="where jobs that never ran rank: before all others, as if slowed most, or "
        "after all that were slowed",
    )
    # The Dally paper knows levels only. Backends also tell shapes of one level apart (`4+4,4+4`
    # and `4+4,3+1,4`). studies/dally-paper/README.md shows that claims of the paper depend on it.
    moves_for: Literal["level", "shape"] = Field(
        default="level",
        description="what a job moves for when its lease ends: a better level, or also fewer "
        "machines or equal shares of them inside its level",
    )
    # Ours: the paper does not say which GPUs of a level a job gets, and knows no shared links.
    placement: Literal["pack", "least-contended"] = Field(
        default="pack", description="how GPUs are chosen inside the level that a job accepts"
    )
