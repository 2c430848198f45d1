"""Options of the classic policies, and those that several policies have.

The manual shows the comment above an option, the source of its default, beside the option. Options
of a policy with a room are in `options.py` there. They have a module of their own because most
policies are compiled (decision 29), and compiled modules hold no pydantic models.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from artist.contract import Options
from artist.io.documents import Lease, NonNegative
from artist.policies.shared.placers import PlacerName
from artist.policies.shared.ranking import OrderName


class LeaseOptions(Options):
    """Options of a policy that gives GPUs for a lease."""

    # One hour: the lease of the original simulator's runs. Dally's delay timers of 12 and 24 h
    # were tuned for it. All policies with leases have the same default, so that a comparison of
    # policies does not compare lengths of leases.
    lease_s: Lease = Field(default=3600.0, description="lease, seconds")


class SharingOptions(Options):
    """Options of a policy that may keep jobs apart on links (`sharing.py`)."""

    # Off: the policies' papers know no such rule.
    most_slowdown: NonNegative | None = Field(
        default=None,
        description="a job waits where contention would make its iterations, or those of a "
        "co-located job, longer by more than this share; if not given, it never waits for that",
    )


class ClassicOptions(LeaseOptions, SharingOptions):
    """Options of every classic policy. A row of the table of policies presets the first three."""

    order: OrderName = Field(
        default="arrival", description="key by which jobs come forward, the smallest first"
    )
    preemption: Literal["never", "lease", "at-once"] = Field(
        default="never", description="when a running job may lose its GPUs"
    )
    strict: bool = Field(
        default=False, description="whether a job that does not fit blocks the jobs behind it"
    )
    placement: PlacerName = Field(default="pack", description="how GPUs are chosen")
