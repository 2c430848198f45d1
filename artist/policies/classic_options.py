"""Options of the classic policies."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from artist.policies.shared.options import LeaseOptions, SharingOptions
from artist.policies.shared.orders import OrderName
from artist.policies.shared.placers import PlacerName


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
    placement: PlacerName = Field(default="pack", description="where GPUs are taken")
