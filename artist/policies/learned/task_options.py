"""What an agent sees and may do. Training and evaluation read the same settings.

They are part of the manifest of every weights file, so a policy sees in evaluation what it saw in
training.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import Field

from artist.contract import Options
from artist.policies.shared.placers import PlacerName
from artist.policies.shared.ranking import OrderName

TaskName: TypeAlias = Literal["schedule", "place"]
ObservationName: TypeAlias = Literal["sensitivity", "grid", "graph"]


class TaskOptions(Options):
    """A task and its observation. The comment above an option has the source of its default."""

    task: TaskName = Field(
        default="schedule", description="schedule: which job next; place: also on which machines"
    )
    # Its length does not depend on the cluster, so its weights serve every cluster.
    observation: ObservationName = Field(default="sensitivity", description="what the agent sees")
    # Enough that the shortest job of each of the usual demands (1, 2, 4 ... GPUs) is among them.
    candidates: int = Field(
        default=8, ge=1, le=1024, description="waiting jobs that the agent chooses from"
    )
    # The best order without contention (Tiresias, section 3: smallest remaining service first).
    order: OrderName = Field(
        default="area", description="key by which waiting jobs become candidates, smallest first"
    )
    placement: PlacerName = Field(
        default="pack", description="task schedule: where the chosen job gets its GPUs"
    )
    # The paper's agent cannot preempt (section IV).
    preemption: Literal["never", "at-once"] = Field(
        default="never",
        description="task schedule: whether a chosen job may take GPUs of jobs behind it",
    )
    # The paper's agent may (section IV, RL-base).
    may_wait: bool = Field(
        default=True, description="whether none may be answered while there are candidates"
    )
    # The code of the paper never offers one machine; ours does unless it is told otherwise.
    one_machine: bool = Field(
        default=True, description="task place: whether a job may lie on one machine"
    )
