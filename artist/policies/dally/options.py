"""Options of Dally and its variants."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from artist.policies.shared.options import DelayOptions, SharingOptions


class DallyOptions(DelayOptions, SharingOptions):
    """Options of Dally and its variants."""

    # Section IV-B3: the sample's. The original simulator takes the population's.
    deviation: Literal["sample", "population"] = Field(
        default="sample", description="which standard deviation a tuned timer adds"
    )
    # The Dally paper knows levels only. Backends also tell shapes of one level apart (`4+4,4+4`
    # and `4+4,3+1,4`). docs/reproduction.md shows that claims of the paper depend on it.
    moves_for: Literal["level", "shape"] = Field(
        default="level",
        description="what a job moves for when its lease ends: a better level, or also fewer "
        "machines or equal shares of them inside its level",
    )
    # Ours: the paper does not say which GPUs of a level a job gets, and knows no shared links.
    placement: Literal["pack", "least-contended"] = Field(
        default="pack", description="where GPUs are taken inside the level that a job accepts"
    )
