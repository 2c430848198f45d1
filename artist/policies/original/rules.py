"""The original simulator's rules: who comes first, and which levels are open to whom.

One class per scheduler of the original program; `original.py` is the allocator that they share.
Times are seconds; the original counts timers in leases.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Protocol

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.tree import ClusterTree
from artist.policies.original.accounts import Account
from artist.policies.original.tuner import MACHINE, RACK, OriginalTuner
from artist.policies.shared.skew import original_skewed


class OriginalRule(Protocol):
    """What tells the original's schedulers apart."""

    def kind(self, model: str) -> bool:
        """Jobs of one demand and kind differ only in how long they have waited."""
        ...

    def measure(self, account: Account) -> float:
        """The priority; the smallest comes first."""
        ...

    def levels(self, free: FreeGpus, gpus: int, kind: bool, waited_s: float) -> Sequence[int]:
        """The levels that a job accepts, innermost first. A longer wait never closes one."""
        ...

    def granted(
        self, tree: ClusterTree, level: int, gpus: int, waited_s: float, now: float
    ) -> None:
        """A job got GPUs that were looked for inside one unit of a level."""
        ...

    def tables(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """Extra result tables."""
        ...


class DallyRule:
    """Dally and its variants: network-sensitive priority and delay timers.

    `timers`: when a rack and when the network is accepted, in leases, both counted from when
    the job entered the queue; None leaves that to the auto-tuner.
    """

    def __init__(
        self, lease_s: float, timers: tuple[float, float] | None, tuner: OriginalTuner
    ) -> None:
        self._lease_s = lease_s
        self._timers = timers
        self.tuner = tuner
        self._large: dict[int, tuple[bool, bool]] = {}

    def kind(self, model: str) -> bool:
        """Models make no difference."""
        return False

    def measure(self, account: Account) -> float:
        """Ideal over actual run time."""
        return account.slowdown

    def levels(self, free: FreeGpus, gpus: int, kind: bool, waited_s: float) -> Sequence[int]:
        """A level opens when its timer expires, or when the job cannot fit inside the one before.

        The network's timer may expire before the rack's; it then lets the job past it.
        """
        tree = free.tree
        rack, network = self._timers or self.tuner.timers(gpus)
        inside, across = self._too_large(tree, gpus)
        rack_open = inside or waited_s >= self._lease_s * rack
        network_open = across or waited_s >= self._lease_s * network
        return _levels(0, tree.machine, tree.root, rack_open, network_open)

    def _too_large(self, tree: ClusterTree, gpus: int) -> tuple[bool, bool]:
        """Whether a demand exceeds every machine, and every rack."""
        if gpus not in self._large:
            rack = tree.root - 1
            self._large[gpus] = (gpus > tree.largest(tree.machine), gpus > tree.largest(rack))
        return self._large[gpus]

    def granted(
        self, tree: ClusterTree, level: int, gpus: int, waited_s: float, now: float
    ) -> None:
        """Waits for a machine or a rack are recorded, those for the network are not."""
        if level < tree.root:
            lease_s = self._lease_s
            which = MACHINE if level <= tree.machine else RACK
            self.tuner.record(which, gpus, waited_s / lease_s, now / lease_s)

    def tables(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """The auto-tuner's records, where it is used; times in leases."""
        return {} if self._timers else {"autotuner": self.tuner.rows}


class TiresiasRule:
    """Continuous least attained service, and consolidation by a fixed list of models.

    It differs from the paper on purpose of its authors or by accident: there are no queues and
    no promotion; skew is a list (`skew.py`); there are no timers, a level is open or closed
    by what is free.
    """

    def kind(self, model: str) -> bool:
        """Whether the model needs consolidation."""
        return original_skewed(model)

    def measure(self, account: Account) -> float:
        """Attained service in GPU-seconds."""
        return account.service_gpu_s

    def levels(self, free: FreeGpus, gpus: int, kind: bool, waited_s: float) -> Sequence[int]:
        """By kind and by what is free; a wait changes nothing. Sockets are not preferred.

        A rack is open to unskewed jobs and, by what looks like a slip (the free GPUs of the
        cluster stand where the job's demand should), to every job while at least a machine's
        worth of GPUs is free in the cluster. The network is open to unskewed jobs and to
        jobs larger than a rack.
        """
        tree = free.tree
        rack_open = not kind or free.total >= tree.largest(tree.machine)
        network_open = not kind or gpus > tree.largest(tree.root - 1)
        return _levels(tree.machine, tree.machine, tree.root, rack_open, network_open)

    def granted(
        self, tree: ClusterTree, level: int, gpus: int, waited_s: float, now: float
    ) -> None:
        """Nothing to remember."""

    def tables(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """None."""
        return {}


@cache
def _levels(
    first: int, machine: int, root: int, rack_open: bool, network_open: bool
) -> tuple[int, ...]:
    """Levels from the first up to the machine, and those that are open."""
    levels = (*range(first, machine + 1),)
    if rack_open:
        levels += (*range(machine + 1, root),)
    return (*levels, root) if network_open else levels
