"""Types of fields that several documents have, with their bounds."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from artist.units import SHORTEST_LEASE_S

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]

Duration = Annotated[float, Field(ge=1e-9, allow_inf_nan=False)]
"""A length of time in seconds, at least one tick of the engine's clock."""

Lease = Annotated[float, Field(ge=SHORTEST_LEASE_S, allow_inf_nan=False)]
"""How long a job keeps its GPUs, in seconds."""
