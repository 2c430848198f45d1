"""What the original simulator's schedulers decide: the order of jobs, the levels they accept.

`dally.py` and `tiresias.py` have the two rules, `scheduler.py` the allocator that they share. Times
are seconds, timers are leases.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Protocol

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.tree import ClusterTree
from artist.policies.original.accounts import Account


class OriginalRule(Protocol):
    """The part in which the schedulers differ."""

    def kind(self, model: str) -> bool:
        """Whether a model must be consolidated, if that makes a difference.

        Jobs of one demand and kind that have waited equally long accept the same levels.
        """
        ...

    def measure(self, account: Account) -> float:
        """The priority. The job with the smallest measure comes first."""
        ...

    def levels(self, free: FreeGpus, gpus: int, kind: bool, waited_s: float) -> Sequence[int]:
        """The levels that a job accepts, innermost first. A longer wait never closes a level."""
        ...

    def granted(
        self, tree: ClusterTree, level: int, gpus: int, waited_s: float, now: float
    ) -> None:
        """A job got GPUs inside one unit of `level`, after a wait of `waited_s` seconds."""
        ...

    def tables(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """Extra result tables, as `Policy.tables`."""
        ...


@cache
def open_levels(
    first: int, machine: int, root: int, rack_open: bool, network_open: bool
) -> tuple[int, ...]:
    """Levels from `first` up to the machine, then racks and the network if they are open."""
    levels = (*range(first, machine + 1),)
    if rack_open:
        levels += (*range(machine + 1, root),)
    return (*levels, root) if network_open else levels
