"""Which runs there are: every policy in every world, then one choice at a time in some of them."""

from __future__ import annotations

from typing import NamedTuple

REPLICATES = 10
POLICIES = ("fifo-backfill", "fifo", "srtf", "las", "tiresias", "dally")
"""The first is what the others are compared with."""
OVERSUBSCRIPTIONS = (1, 2, 4)
FAILURES = ("none", "meta-rsc")
BEST, USUAL, PIPELINE_FIRST = "best", "tensor-context-data-pipeline", "tensor-context-pipeline-data"
ORDERS = (BEST, USUAL, PIPELINE_FIRST)
LAYOUTS = {
    "racks-of-64": (32, 8, 8),
    "racks-of-256": (8, 32, 8),
    "rails": (4, 64, 8),
    "blocks-of-64": (32, 1, 64),
}
"""Racks, machines of a rack, GPUs of a machine: 2,048 GPUs each. The first is the usual one.

`rails` has its leaf of 64 ports for the GPUs of equal rank of 64 machines: eight leaves are a rack.
"""
USUAL_LAYOUT = "racks-of-64"


class Planned(NamedTuple):
    """A run."""

    policy: str
    oversubscription: int
    failures: str
    order: str
    layout: str
    seed: int

    @property
    def place(self) -> tuple[str, ...]:
        """The columns that name the run."""
        return tuple(map(str, self))


def planned() -> list[Planned]:
    """All runs, replicate by replicate."""
    return [run for seed in range(REPLICATES) for run in _replicate(seed)]


def _replicate(seed: int) -> list[Planned]:
    first = POLICIES[0]
    runs = [
        Planned(policy, over, failures, BEST, USUAL_LAYOUT, seed)
        for over in OVERSUBSCRIPTIONS
        for failures in FAILURES
        for policy in POLICIES
    ]
    for over in OVERSUBSCRIPTIONS:
        runs += [
            Planned(first, over, "meta-rsc", order, USUAL_LAYOUT, seed) for order in ORDERS[1:]
        ]
        runs += [
            Planned(policy, over, "meta-rsc", BEST, layout, seed)
            for layout in LAYOUTS
            if layout != USUAL_LAYOUT
            for policy in (first, "dally")
        ]
    return runs
