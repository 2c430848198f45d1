"""Types of fields that several documents have, with their bounds."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from artist.units import SHORTEST_LEASE_S

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]

Duration = Annotated[float, Field(ge=1e-9, allow_inf_nan=False)]
"""A length of time in seconds, at least one tick of the engine's clock."""

MOST_GPU_S = 1.6e16
"""The longest time (`units.MAX_TIME_S`) on the most GPUs of a cluster (4 million)."""

GpuSeconds = Annotated[float, Field(ge=1e-9, le=MOST_GPU_S, allow_inf_nan=False)]
"""Attained service, GPUs x seconds."""

Lease = Annotated[float, Field(ge=SHORTEST_LEASE_S, allow_inf_nan=False)]
"""How long a job keeps its GPUs, in seconds."""
