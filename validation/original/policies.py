"""Dally, its variants and Tiresias as the original simulator has them: policies in a file.

    artist sim --policy validation/original/policies.py:Dally ...

The classes are `Dally`, `DallyManual`, `DallyNoWait`, `DallyFullyConsolidated` and `Tiresias`.
Source: the simulator that the authors of Dally (IEEE Big Data 2025) published.

**What is where.** Batches, leases, offers: `scheduler.py`; a job's books: `accounts.py`. The queue,
greedy backfill and placement: `bids.py`. The order in which machines are visited: `hash_order.py`.

**Both rules.** Waiting jobs bid at every offer of free GPUs. The smallest measure comes first;
among equals, the job that has waited longest. A bid that does not fit is passed. A job whose lease
ended gives its GPUs back and waits.

**Dally.**

1. The measure is `Nw_sens`.
2. A job accepts a machine at once, a rack when its rack timer has expired, and the network when
   its network timer has expired. Both timers start when the job enters the queue. A level also
   opens if the job is larger than every unit of the level before.
3. A timer counts in leases, tuned from past waits or fixed. The options are seconds, as those of
   artist's `dally`: with leases of an hour, a timer of 12 hours is 12 leases.

**Tiresias.**

1. The measure is the attained service in GPU-seconds. There are no queues and no promotion.
2. Jobs of most models are consolidated; a fixed list names the others. Free GPUs and sizes open
   and close levels. There are no timers (`TiresiasRule.levels`).

**Deviations** from the original simulator: `scheduler.py`. How its rules differ from the Dally
paper: decision 4 (docs/decisions/0004-dally-rules.md).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from pydantic import Field

# artist runs a policy's file alone. The modules beside it are found from the repository's root.
sys.path.append(str(Path(__file__).resolve().parents[2]))

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.tree import ClusterTree
from artist.io.documents import NonNegative, Positive
from artist.registry import UnknownNameError
from artist.workload.models import canonical
from validation.original.accounts import Account
from validation.original.bids import open_levels
from validation.original.scheduler import OriginalOptions, OriginalScheduler

MACHINE, RACK = 0, 1
"""The two lists of waits per GPU demand."""

# Floors of the two timers in leases. The cap of the rack's timer is this share of the history.
RACK_FLOOR, NETWORK_FLOOR = 6, 12
RACK_CAP = 0.8


class OriginalTuner:
    """The auto-tuner: two lists of waits per GPU demand, and the timer of each. Times are leases.

        timer = mean + 2 x population deviation of the recorded waits, rounded up, within floor, cap

    The machine's list gives the wait for a rack, the rack's list gives the wait for the network.
    """

    def __init__(
        self,
        history: float,
        deviations: float,
        *,
        floors: tuple[float, ...],
        caps: tuple[float, ...],
    ) -> None:
        """`floors` and `caps` hold two numbers: for the machine's list and the rack's; caps win.

        `history` is the age, in leases, above which a wait may be forgotten (`record`).
        """
        self._history = history
        self._deviations = deviations
        self._floors = floors
        self._caps = caps
        self._waits: dict[tuple[int, int], list[tuple[float, float]]] = {}
        self._tuned: dict[int, tuple[float, float]] = {}
        self.rows: list[dict[str, Any]] = []

    def record(self, level: int, gpus: int, waited: float, now: float) -> None:
        """Record a wait of at least one lease, and forget some waits that are too old.

        `level` is MACHINE or RACK. Forgetting skips the entry behind each entry that it removes,
        as the original simulator does.
        """
        if waited < 1:
            return
        rack, network = self.timers(gpus)
        waits = self._waits.setdefault((level, gpus), [])
        waits.append((now, waited))
        index = 0
        while index < len(waits):
            if now - waits[index][0] > self._history:
                del waits[index]
            index += 1
        timer = self._timer(level, gpus)
        self._tuned[gpus] = (timer, network) if level == MACHINE else (rack, timer)
        self.rows.append(
            {
                "time_leases": now,
                "level": ("machine", "rack")[level],
                "gpus": gpus,
                "waited_leases": waited,
                "samples": len(waits),
                "timer_leases": timer,
            }
        )

    def timers(self, gpus: int) -> tuple[float, float]:
        """Waits after which a rack and the network are accepted; both count from one instant."""
        if gpus not in self._tuned:
            self._tuned[gpus] = (self._timer(MACHINE, gpus), self._timer(RACK, gpus))
        return self._tuned[gpus]

    def _timer(self, level: int, gpus: int) -> float:
        """The timer of one list; one lease without samples, before floor and cap."""
        waits = [waited for _, waited in self._waits.get((level, gpus), ())]
        spread = self._deviations * float(np.std(waits)) if waits else 0.0
        timer = math.ceil(float(np.mean(waits)) + spread) if waits else 1
        return min(self._caps[level], max(self._floors[level], timer))


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


Timers: TypeAlias = Literal["auto", "manual", "none", "unbounded"]


class DallyOptions(OriginalOptions):
    """Options of the original simulator's Dally and its variants."""

    timers: Timers = Field(
        default="auto",
        description="auto: tuned; manual: fixed; none: never wait; unbounded: wait forever",
    )
    machine_timer_s: NonNegative = Field(default=12 * 3600.0, description="wait for a machine")
    rack_timer_s: NonNegative = Field(default=24 * 3600.0, description="wait for a rack, in total")
    history_s: Positive = Field(default=48 * 3600.0, description="age limit of recorded waits")
    deviations: NonNegative = Field(default=2.0, description="deviations added to the mean wait")
    floors_s: tuple[float, float] | None = Field(
        default=None,
        description="least tuned timers: machine, rack; if not given, 6 and 12 leases",
    )
    caps_s: tuple[float, float] | None = Field(
        default=None,
        description="largest tuned timers: machine, rack; if not given, by the history",
    )


class Dally(OriginalScheduler):
    """Dally as the original simulator has it."""

    Options = DallyOptions

    def __init__(self, options: DallyOptions) -> None:
        lease_s = options.lease_s
        timers = {
            "auto": None,
            "manual": (options.machine_timer_s / lease_s, options.rack_timer_s / lease_s),
            "none": (0.0, 0.0),
            "unbounded": (math.inf, math.inf),
        }
        super().__init__(DallyRule(lease_s, timers[options.timers], _tuner(options)), options)


def _tuner(options: DallyOptions) -> OriginalTuner:
    """The auto-tuner of these options, which are seconds; it counts in leases."""
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


class DallyManual(Dally):
    """Dally with fixed timers, as the original simulator has it."""

    class Options(DallyOptions):
        """Fixed timers by default."""

        timers: Timers = "manual"


class DallyNoWait(Dally):
    """Dally that takes whatever level is free, as the original simulator has it."""

    class Options(DallyOptions):
        """No timers by default."""

        timers: Timers = "none"


class DallyFullyConsolidated(Dally):
    """Dally that waits as long as needed for the best level, as the original simulator has it."""

    class Options(DallyOptions):
        """Timers that never expire by default."""

        timers: Timers = "unbounded"


UNSKEWED = frozenset({"resnet50", "resnet18", "bert-large"})
"""Models that the original simulator's Tiresias does not consolidate: a fixed list."""


@cache
def skewed(model: str) -> bool:
    """Whether the original simulator consolidates jobs of a model: its list does not have it."""
    try:
        return canonical(model) not in UNSKEWED
    except UnknownNameError:
        return True


class TiresiasRule:
    """Tiresias: least attained service, and consolidation by a fixed list of models.

    It differs from the Tiresias paper: there are no queues and no promotion, and skew is a list.
    There are no timers: the number of free GPUs opens and closes levels.
    """

    def kind(self, model: str) -> bool:
        """Whether the model must be consolidated."""
        return skewed(model)

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


class Tiresias(OriginalScheduler):
    """Tiresias as the original simulator has it."""

    Options = OriginalOptions

    def __init__(self, options: OriginalOptions) -> None:
        super().__init__(TiresiasRule(), options)
