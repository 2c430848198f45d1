"""Dally as the original simulator has it (policy `dally-original` and its variants).

`scheduler.py` has the allocator, `rules.py` the rule, `tuner.py` the timers. Decision 4
(docs/decisions/0004-dally-rules.md) compares all of it with the Dally paper. The original
simulator counts timers in leases; the options are seconds, as those of `dally`.
"""

from __future__ import annotations

import math

from artist.policies.original.options import OriginalDallyOptions
from artist.policies.original.rules import DallyRule
from artist.policies.original.scheduler import OriginalScheduler
from artist.policies.original.tuner import NETWORK_FLOOR, RACK_CAP, RACK_FLOOR, OriginalTuner


class OriginalDally(OriginalScheduler):
    """Dally and its variants. With leases of an hour, timers of 12 hours are 12 leases."""

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
