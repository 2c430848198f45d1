"""What Dally and its variants may be told."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from artist.policies.original.options import OriginalOptions


class DallyOptions(OriginalOptions):
    """Options of Dally and its variants."""

    timers: Literal["auto", "manual", "none", "unbounded"] = Field(
        default="auto",
        description="auto: Algorithm 2; manual: fixed; none: never wait; unbounded: wait for ever",
    )
    # Section IV-B2: 12 hours for the machine, another 12 (24 in total) for the rack.
    machine_timer_s: float = Field(default=12 * 3600.0, ge=0, description="wait for a machine")
    rack_timer_s: float = Field(default=24 * 3600.0, ge=0, description="wait for a rack, in total")
    # The original's history limit, in the paper's terms of a window by age (IV-B3).
    history_s: float = Field(default=48 * 3600.0, gt=0, description="age limit of recorded waits")
    # Section IV-B3: "adding two sample standard deviations".
    deviations: float = Field(default=2.0, ge=0, description="deviations added to the mean wait")
    # The paper has neither floors nor caps; the original's are named in original_tuner.py.
    deviation: Literal["sample", "population"] = "sample"
    floors_s: tuple[float, float] | None = Field(
        default=None, description="least tuned timers: machine, rack; by the rules if not given"
    )
    caps_s: tuple[float, float] | None = Field(
        default=None, description="largest tuned timers: machine, rack; by the rules if not given"
    )
    # The paper knows levels only. Backends tell shapes apart (`4+4,4+4` from `4+4,3+1,4`), and
    # docs/reproduction.md shows that what the paper claims depends on it.
    moves_for: Literal["level", "shape"] = Field(
        default="level",
        description="what a job moves for when its lease ends: a better level, or also fewer "
        "machines or equal shares of them inside its level",
    )
    # The lease of the original's runs.
    lease_s: float = Field(
        default=3600.0, ge=1e-9, allow_inf_nan=False, description="lease, seconds"
    )
