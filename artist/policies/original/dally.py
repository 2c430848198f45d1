"""Dally as the original simulator has it: policy `dally-original` and its variants.

Source: the simulator that the authors of Dally (IEEE Big Data 2025) published.

**What is where.**

- Batches, leases, offers: `scheduler.py`; a job's books: `accounts.py`.
- Priority and the levels that a job accepts: `DallyRule`; timers: `tuner.py`.
- The queue and greedy backfill: `queue.py`; placement: `placement.py`; the order in which machines
  are visited: `hash_order.py`.

**The rule.**

1. Waiting jobs bid at every offer of free GPUs. The smallest `Nw_sens` comes first; among equals,
   the job that has waited longest. A bid that does not fit is passed.
2. A job accepts a machine at once, a rack when its rack timer has expired, and the network when
   its network timer has expired. Both timers start when the job enters the queue. A level also
   opens if the job is larger than every unit of the level before.
3. A timer counts in leases, tuned from past waits or fixed. The options are seconds, as those of
   `dally`: with leases of an hour, a timer of 12 hours is 12 leases.
4. A job whose lease ended gives its GPUs back and waits.

**Deviations** from the original simulator: `scheduler.py`. How its rules differ from the Dally
paper: decision 4 (docs/decisions/0004-dally-rules.md).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.tree import ClusterTree
from artist.policies.original.accounts import Account
from artist.policies.original.options import OriginalDallyOptions
from artist.policies.original.rules import open_levels
from artist.policies.original.scheduler import OriginalScheduler
from artist.policies.original.tuner import (
    MACHINE,
    NETWORK_FLOOR,
    RACK,
    RACK_CAP,
    RACK_FLOOR,
    OriginalTuner,
)


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
        return open_levels(0, tree.machine, tree.root, rack_open, network_open)

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


class OriginalDally(OriginalScheduler):
    """The original simulator's Dally and its variants."""

    Options = OriginalDallyOptions

    def __init__(self, options: OriginalDallyOptions) -> None:
        lease_s = options.lease_s
        timers = {
            "auto": None,
            "manual": (options.machine_timer_s / lease_s, options.rack_timer_s / lease_s),
            "none": (0.0, 0.0),
            "unbounded": (math.inf, math.inf),
        }
        super().__init__(DallyRule(lease_s, timers[options.timers], _tuner(options)), options)


def _tuner(options: OriginalDallyOptions) -> OriginalTuner:
    lease_s = options.lease_s
    history = options.history_s / lease_s
    floors = tuple(floor / lease_s for floor in options.floors_s or ())
    caps = tuple(cap / lease_s for cap in options.caps_s or ())
    return OriginalTuner(
        history,
        options.deviations,
        floors=floors or (RACK_FLOOR, NETWORK_FLOOR),
        caps=caps or (math.ceil(RACK_CAP * history), history),
    )
