"""Dally that also moves to a better shape within its level: an experiment, no policy of the paper.

By the paper a level is all that counts: a job whose GPUs are in one rack is content, however
unevenly they lie over its machines. Latencies do tell shapes apart (`4+4,4+4` from `4+4,3+1,4`):
ASTRA-sim's cost of an uneven one is up to tens of times higher. This variant lets a job whose lease
ended move within its level too: to fewer machines, or to equal shares per machine.
"""

from __future__ import annotations

from artist.cluster.placement import Placement, machine_counts, tier
from artist.cluster.state import FreeGpus
from artist.cluster.tree import ClusterTree
from artist.policies.base import JobView
from artist.policies.dally import Dally
from artist.policies.placers import pack_in_level


class DallyWithinLevel(Dally):
    """Dally, content with nothing but the best shape that is free."""

    def contests(self, *args: object) -> bool:
        """Whether to be asked when a lease ends: always, a better shape may have become free."""
        del args
        return True

    def _improve(self, view: JobView, free: FreeGpus) -> Placement | None:
        assert view.placement is not None  # only running jobs improve
        current = rank(free.tree, view.placement)
        for level in range(free.tree.machine, view.tier + 1):
            placement = pack_in_level(free, level, view.job.gpus)
            if placement is not None:
                return placement if rank(free.tree, placement) < current else None
        return None


def rank(tree: ClusterTree, placement: Placement) -> tuple[int, int, bool]:
    """Level, number of machines, and whether their shares differ; smaller is better."""
    machines = machine_counts(tree, placement)
    return tier(tree, placement), len(machines), len(set(machines.values())) > 1
