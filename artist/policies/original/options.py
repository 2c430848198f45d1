"""Options of the original simulator's schedulers."""

from __future__ import annotations

from pydantic import Field

from artist.policies.shared.options import DelayOptions, LeaseOptions


class OriginalOptions(LeaseOptions):
    """Options that all of the original's schedulers have."""

    # Of its measured runs.
    granularity: int = Field(default=1000, ge=1, description="iterations per GPU in a batch")
    machine_order_seed: int | None = Field(
        default=None,
        ge=0,
        description="machines numbered at random; not given: as they are",
    )


class OriginalDallyOptions(DelayOptions, OriginalOptions):
    """Options of the original's Dally and its variants."""
