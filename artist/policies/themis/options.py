"""Options of Themis."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from artist.io.documents import Lease
from artist.policies.options import LeaseOptions, SharingOptions
from artist.policies.shared.placers import PlacerName


class ThemisOptions(LeaseOptions, SharingOptions):
    """Options of Themis."""

    # Our choice. It is said to be the paper's, after its sensitivity study (unchecked).
    fairness_knob: float = Field(
        default=0.8, ge=0, lt=1, description="f: the share of jobs that do not bid"
    )
    # The lease, one hour as in the other policies. The paper's lease is 20 minutes (unchecked).
    # A shorter period puts fewer leases on offer together, too few for a large gang. With the ten
    # minutes of CASSINI (section 5.1), finish_time_fairness_max of `artist sim --racks 4 --policy
    # themis` is 610 instead of 329.
    period_s: Lease | None = Field(
        default=None, description="bidding period, seconds; as long as the lease if not given"
    )
    leftover: Literal["random", "worst-first"] = Field(
        default="random", description="order of the jobs that get the GPUs that no bidder won"
    )
    placement: PlacerName = Field(default="pack", description="how GPUs are chosen")
