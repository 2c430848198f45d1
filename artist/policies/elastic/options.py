"""Options of policies that place all jobs at regular times."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from artist.contract import Options
from artist.io.documents import GpuSeconds, Lease


class RoundOptions(Options):
    """Options of a policy that places all jobs at regular times."""

    # OSDI 2021 (Pollux), section 5.1: every 60 seconds.
    period_s: Lease = Field(default=60.0, description="length of a round, seconds")


class SharesOptions(RoundOptions):
    """Options of the elastic baselines. A row of the table of policies presets the rule."""

    rule: Literal["equal-share", "max-throughput", "optimus"] = Field(
        default="equal-share", description="which job gets the next GPU"
    )
    placement: Literal["pack", "emptiest"] = Field(
        default="pack",
        description="how GPUs are chosen: close together, or on the machines with most free ones",
    )
    known: Literal["now", "stretch"] = Field(
        default="now",
        description="what optimus counts as left: all, or what follows the present stretch of one "
        "noise scale",
    )


class QueuesOptions(RoundOptions):
    """Options of Tiresias in rounds. The default is that of Pollux's authors (tiresias.py)."""

    threshold_gpu_s: GpuSeconds = Field(
        default=57_600.0, description="service that takes a job to the second queue, GPU-seconds"
    )
