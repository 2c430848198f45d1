"""What happens to a job in a region without its data: `--set data.KEY=VALUE`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from artist.contract import Options


class DataOptions(Options):
    """MAST, sections 2 and 4.3: a job elsewhere than its data has "unacceptable performance", so
    regions without it give up; if all do, data is moved and the job waits until it is there."""

    remote: Literal["refuse", "slow"] = Field(
        default="refuse",
        description="a job in a region without its data: does not start there, or reads its tables "
        "over the wide-area network",
    )
    replicate: Literal["on-demand", "never"] = Field(
        default="on-demand",
        description="tables of a job that was refused: are copied to the region, or stay",
    )
