"""Options of Tiresias."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from artist.io.documents import GpuSeconds
from artist.policies.options import LeaseOptions, SharingOptions
from artist.policies.shared.placers import PlacerName


class TiresiasOptions(LeaseOptions, SharingOptions):
    """Options of Tiresias."""

    index: Literal["las", "gittins"] = Field(
        default="las", description="order inside a queue: by start, or by 2D-Gittins index"
    )
    # In the simulator of the authors: three queues (`num_queue`) with these limits (`queue_limit`).
    thresholds_gpu_s: tuple[GpuSeconds, ...] = Field(
        default=(3250.0, 7200.0),
        description="service at which a job leaves each queue but the last",
    )
    # The simulator of the authors has no promotion unless the name of the schedule gives a knob.
    promote_knob: float | None = Field(
        default=None,
        gt=0,
        le=1e6,
        description="PROMOTEKNOB: promote a job when its wait is this many times its run time",
    )
    # A value between ResNet-18 (0.202, "low" in Dally's Table I) and MobileNetV3 (0.234, "high").
    # With it the layer tables give the classes of that table. Tiresias fits its PACKLIMIT to the
    # job history of a cluster and gives no number.
    skew_threshold: float = Field(
        default=0.22, ge=0, le=1, description="PACKLIMIT: jobs above it are consolidated"
    )
    placement: Literal["skew"] | PlacerName = Field(
        default="skew", description="by skew (the paper's), or one placer for all jobs"
    )
    past_service_gpu_s: tuple[GpuSeconds, ...] = Field(
        default=(), description="for gittins: total service of past jobs, GPU-seconds"
    )
    past_service_file: str | None = Field(
        default=None, description="for gittins: a CSV file with such services"
    )
    past_service_column: str = Field(
        default="service_gpu_s", description="for gittins: the column of that file"
    )

    @model_validator(mode="after")
    def _consistent(self) -> TiresiasOptions:
        thresholds = self.thresholds_gpu_s
        if list(thresholds) != sorted(set(thresholds)):
            raise ValueError(f"thresholds_gpu_s must rise, got {thresholds}")
        known = self.past_service_gpu_s or self.past_service_file
        if self.index == "gittins" and not known:
            raise ValueError(
                "index=gittins needs a distribution: past_service_gpu_s or past_service_file"
            )
        return self
