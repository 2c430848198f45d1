"""Options of the original simulator's schedulers."""

from __future__ import annotations

from pydantic import Field

from artist.policies.shared.options import DelayOptions, LeaseOptions


class OriginalOptions(LeaseOptions):
    """Options that all schedulers of the original simulator have."""

    # That of the recorded runs of the original simulator.
    granularity: int = Field(default=1000, ge=1, description="iterations per GPU in a batch")
    machine_order_seed: int | None = Field(
        default=None,
        ge=0,
        description="seed of random numbers of the machines; if not given, their own numbers",
    )


class OriginalDallyOptions(DelayOptions, OriginalOptions):
    """Options of the original simulator's Dally and its variants."""
