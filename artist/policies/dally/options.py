"""Options of Dally and its variants."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from artist.policies.shared.options import DelayOptions


class DallyOptions(DelayOptions):
    """Options of Dally and its variants."""

    deviation: Literal["sample", "population"] = "sample"
    # The paper knows levels only. Backends tell shapes apart (`4+4,4+4` from `4+4,3+1,4`), and
    # docs/reproduction.md shows that what the paper claims depends on it.
    moves_for: Literal["level", "shape"] = Field(
        default="level",
        description="what a job moves for when its lease ends: a better level, or also fewer "
        "machines or equal shares of them inside its level",
    )
