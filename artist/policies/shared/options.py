"""Options that several policies share. The comment above an option gives the source of its default.

The manual shows these comments beside the options.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from artist.contract import Options
from artist.io.fields import Lease, NonNegative, Positive


class LeaseOptions(Options):
    """Options of a policy that gives GPUs for a lease."""

    # One hour: the lease of the original simulator's runs. Dally's delay timers of 12 and 24 h
    # were tuned for it. All policies with leases have the same default, so that a comparison of
    # policies does not compare lengths of leases.
    lease_s: Lease = Field(default=3600.0, description="lease, seconds")


class DelayOptions(LeaseOptions):
    """Options of delay scheduling over network levels (Dally, section IV-B)."""

    timers: Literal["auto", "manual", "none", "unbounded"] = Field(
        default="auto",
        description="auto: Algorithm 2; manual: fixed; none: never wait; unbounded: wait for ever",
    )
    # Section IV-B2: 12 hours for the machine, another 12 (24 in total) for the rack.
    machine_timer_s: NonNegative = Field(default=12 * 3600.0, description="wait for a machine")
    rack_timer_s: NonNegative = Field(default=24 * 3600.0, description="wait for a rack, in total")
    # The history limit of the original simulator. The Dally paper has a window by age (IV-B3).
    history_s: Positive = Field(default=48 * 3600.0, description="age limit of recorded waits")
    # Section IV-B3: "adding two sample standard deviations".
    deviations: NonNegative = Field(default=2.0, description="deviations added to the mean wait")
    # The Dally paper has neither floors nor caps. The original simulator has both
    # (artist/policies/original/tuner.py).
    floors_s: tuple[float, float] | None = Field(
        default=None,
        description="least tuned timers: machine, rack; if not given, those of the policy",
    )
    caps_s: tuple[float, float] | None = Field(
        default=None,
        description="largest tuned timers: machine, rack; if not given, those of the policy",
    )


class SharingOptions(Options):
    """Options of a policy that may keep jobs apart on links (`sharing.py`)."""

    # Off: the policies' papers know no such rule.
    most_slowdown: NonNegative | None = Field(
        default=None,
        description="a job waits where contention would make its iterations, or those of a job "
        "beside it, longer by more than this share; if not given, it never waits for that",
    )
