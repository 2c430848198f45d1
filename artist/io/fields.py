"""Types of fields that several documents have, with their bounds."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]

Duration = Annotated[float, Field(ge=1e-9, allow_inf_nan=False)]
"""A length of time in seconds, at least one tick of the engine's clock."""
