"""Options of the queue of jobs above their quota."""

from __future__ import annotations

from pydantic import Field

from artist.contract import Options
from artist.io.documents import Duration, NonNegative, Positive


class QueueOptions(Options):
    """The paper publishes neither weights nor cap nor window: those values are our choice."""

    # Our choice: an hour of waiting is worth as much as having used nothing lately.
    age_weight: NonNegative = Field(1.0, description="credit of an hour of waiting (eq. 10)")
    age_cap_s: Positive = Field(86400.0, description="waiting beyond it earns nothing (eq. 10)")
    fair_weight: NonNegative = Field(1.0, description="credit of having used nothing (eq. 11)")
    window_s: Positive = Field(3600.0, description="length of the fair-share window (eq. 11)")
    # MAST, section 5.4: "running the GMS-scan pass once every 5 minutes".
    pass_s: Duration = Field(300.0, description="time between passes over all waiting jobs")
    # Our choice, as the paper gives no bound: the time between passes.
    slo_s: Positive = Field(300.0, description="a job within its quota is late after this wait")
