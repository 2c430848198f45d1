"""Which runs there are. A row is a plan, a policy and a seed: nothing else decides its result."""

from __future__ import annotations

from typing import NamedTuple

REPLICATES = 20
POLICIES = ("mast", "federated")
PLANS = ("V0", "V1", "V2", "again", "loop")
"""`again` and `loop` plan for a second week from V2: by the first demand, by the measured one."""


class Planned(NamedTuple):
    """A run of the second week."""

    plan: str
    policy: str
    seed: int

    @property
    def place(self) -> tuple[str, ...]:
        """The columns that name the run."""
        return (self.plan, self.policy, str(self.seed))


def planned() -> list[Planned]:
    """All runs, replicate by replicate."""
    return [
        Planned(plan, policy, seed)
        for seed in range(REPLICATES)
        for policy in POLICIES
        for plan in PLANS
    ]
