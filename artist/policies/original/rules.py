"""Rules of the original simulator's schedulers: which job comes first, which levels it accepts.

One class per scheduler. `scheduler.py` has the allocator that they share. Times are seconds,
timers are leases.
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


class DallyRule:
    """Dally and its variants: network-sensitive priority and delay timers.

    `timers` holds the waits in leases after which a job accepts a rack and the network. Both
    count from when the job entered the queue. None leaves them to the auto-tuner.
    """

    def __init__(
        self, lease_s: float, timers: tuple[float, float] | None, tuner: OriginalTuner
    ) -> None:
        self._lease_s = lease_s
        self._timers = timers
        self.tuner = tuner
        # Per GPU demand: the answer of `_too_large`.
        self._large: dict[int, tuple[bool, bool]] = {}

    def kind(self, model: str) -> bool:
        """False: models make no difference."""
        return False

    def measure(self, account: Account) -> float:
        """Ideal run time / actual run time of the work done (`Nw_sens`)."""
        return account.slowdown

    def levels(self, free: FreeGpus, gpus: int, kind: bool, waited_s: float) -> Sequence[int]:
        """A level opens when its timer expires, or if the job cannot fit inside the level before.

        The network's timer may expire before the rack's. Then the network is open and racks are
        not.
        """
        tree = free.tree
        rack, network = self._timers or self.tuner.timers(gpus)
        inside, across = self._too_large(tree, gpus)
        rack_open = inside or waited_s >= self._lease_s * rack
        network_open = across or waited_s >= self._lease_s * network
        return _levels(0, tree.machine, tree.root, rack_open, network_open)

    def _too_large(self, tree: ClusterTree, gpus: int) -> tuple[bool, bool]:
        """Whether a demand is larger than every machine, and than every rack."""
        if gpus not in self._large:
            rack = tree.root - 1
            self._large[gpus] = (gpus > tree.largest(tree.machine), gpus > tree.largest(rack))
        return self._large[gpus]

    def granted(
        self, tree: ClusterTree, level: int, gpus: int, waited_s: float, now: float
    ) -> None:
        """Record the wait for a machine or a rack. Waits for the network are not recorded."""
        if level < tree.root:
            lease_s = self._lease_s
            waits_of = MACHINE if level <= tree.machine else RACK
            self.tuner.record(waits_of, gpus, waited_s / lease_s, now / lease_s)

    def tables(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """One row per recorded wait, if the timers are tuned; times in leases."""
        return {} if self._timers else {"autotuner": self.tuner.rows}


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
        return _levels(tree.machine, tree.machine, tree.root, rack_open, network_open)

    def granted(
        self, tree: ClusterTree, level: int, gpus: int, waited_s: float, now: float
    ) -> None:
        """Nothing is recorded."""

    def tables(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """No tables."""
        return {}


@cache
def _levels(
    first: int, machine: int, root: int, rack_open: bool, network_open: bool
) -> tuple[int, ...]:
    """Levels from `first` up to the machine, then racks and the network if they are open."""
    levels = (*range(first, machine + 1),)
    if rack_open:
        levels += (*range(machine + 1, root),)
    return (*levels, root) if network_open else levels
