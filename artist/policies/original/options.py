"""Options that choose the original simulator's rules."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from artist.contract import Options


class OriginalOptions(Options):
    """What every policy that the original simulator has as well may be told."""

    rules: Literal["paper", "original"] = Field(
        default="paper", description="the paper's rules, or those of the original simulator"
    )
    # Of its measured runs.
    granularity: int = Field(
        default=1000, ge=1, description="rules=original: iterations per GPU in a batch"
    )
    machine_order_seed: int | None = Field(
        default=None,
        ge=0,
        description="rules=original: machines numbered at random; not given: as they are",
    )
