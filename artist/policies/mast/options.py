"""Options of MAST and of a federation."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from artist.policies.quota.options import QueueOptions

Cell = Literal[1, 3, 5, 6, 9]
"""Of Table 1: (queue, allocation) in cluster, cluster; global, cluster; region, region; global,
region (MAST); global, global."""


class MastOptions(QueueOptions):
    """What `--set policy.KEY=VALUE` can change."""

    # Section 4.1: "Solution (6) is our approach".
    cell: Cell = Field(6, description="cell of Table 1: where queues are, how far a plan looks")
    # Section 4.3: "MAST will start data replication, waiting for its completion".
    without_data: Literal["wait", "nearest"] = Field(
        "wait",
        description="a job whose tables are in no single region: waits for copies, or runs where "
        "the fewest bytes are missing, as it always does under data.remote=slow",
    )
    # Section 4.1: algorithms that schedule one job at a time.
    joint: int = Field(
        1,
        ge=1,
        le=6,
        description="jobs that are placed together where none must be preempted (cell 9)",
    )


class FederatedOptions(MastOptions):
    """A federation; by default the one that the paper simulates."""

    # Section 5.6: "dispatches a workload to the region with the lowest demand over supply".
    cell: Cell = Field(5, description="cell of Table 1: where queues are, how far a plan looks")
