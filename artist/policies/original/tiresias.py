"""Tiresias as the original simulator has it: policy `tiresias-original`.

Source: the simulator that the authors of Dally (IEEE Big Data 2025) published.

**What is where.** As in `dally.py`; the priority and the levels that a job accepts are in
`TiresiasRule` below.

**The rule.**

1. Waiting jobs bid at every offer of free GPUs. The job with the least attained service
   (GPU-seconds) comes first; among equals, the job that has waited longest. A bid that does not fit
   is passed.
2. Jobs of most models are consolidated; a fixed list names the others (`shared/skew.py`). Free GPUs
   and sizes open and close levels. There are no timers (`TiresiasRule.levels`).
3. A job whose lease ended gives its GPUs back and waits. There are no queues and no promotion.

**Deviations** from the original simulator: `scheduler.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.tree import ClusterTree
from artist.policies.original.accounts import Account
from artist.policies.original.options import OriginalOptions
from artist.policies.original.rules import open_levels
from artist.policies.original.scheduler import OriginalScheduler
from artist.policies.shared.skew import original_skewed


class TiresiasRule:
    """Tiresias: least attained service, and consolidation by a fixed list of models.

    It differs from the Tiresias paper: there are no queues and no promotion, and skew is a list
    (`shared/skew.py`). There are no timers: the number of free GPUs opens and closes levels.
    """

    def kind(self, model: str) -> bool:
        """Whether the model must be consolidated."""
        return original_skewed(model)

    def measure(self, account: Account) -> float:
        """Attained service in GPU-seconds."""
        return account.service_gpu_s

    def levels(self, free: FreeGpus, gpus: int, kind: bool, waited_s: float) -> Sequence[int]:
        """Levels open by kind and by the number of free GPUs. A wait changes nothing.

        - Machines are open to every job. Sockets are not preferred.
        - Racks are open to unskewed jobs. They are open to every job while the cluster has at
          least as many free GPUs as a machine has GPUs. This looks like a slip: the free GPUs of
          the cluster stand where the demand of the job should.
        - The network is open to unskewed jobs, and to jobs larger than a rack.
        """
        tree = free.tree
        rack_open = not kind or free.total >= tree.largest(tree.machine)
        network_open = not kind or gpus > tree.largest(tree.root - 1)
        return open_levels(tree.machine, tree.machine, tree.root, rack_open, network_open)

    def granted(
        self, tree: ClusterTree, level: int, gpus: int, waited_s: float, now: float
    ) -> None:
        """Nothing is recorded."""

    def tables(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """No tables."""
        return {}


class OriginalTiresias(OriginalScheduler):
    """The original simulator's Tiresias."""

    Options = OriginalOptions

    def __init__(self, options: OriginalOptions) -> None:
        super().__init__(TiresiasRule(), options)
