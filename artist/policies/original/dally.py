"""Dally as the original simulator has it: policy `dally-original` and its variants.

Source: the simulator that the authors of Dally (IEEE Big Data 2025) published.

**What is where.**

- Batches, leases, offers: `scheduler.py`; a job's books: `accounts.py`.
- Priority and the levels that a job accepts: `rules.py`, `DallyRule`; timers: `tuner.py`.
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

from artist.policies.original.options import OriginalDallyOptions
from artist.policies.original.rules import DallyRule
from artist.policies.original.scheduler import OriginalScheduler
from artist.policies.original.tuner import NETWORK_FLOOR, RACK_CAP, RACK_FLOOR, OriginalTuner


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
