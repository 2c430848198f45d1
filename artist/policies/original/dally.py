"""Dally as the original simulator has it. It counts time in leases."""

from __future__ import annotations

import math

from artist.policies.original.options import OriginalDallyOptions
from artist.policies.original.rules import DallyRule
from artist.policies.original.scheduler import OriginalScheduler
from artist.policies.original.tuner import NETWORK_FLOOR, RACK_CAP, RACK_FLOOR, OriginalTuner


class OriginalDally(OriginalScheduler):
    """The original's Dally and its variants. Timers of 12 and 24 hours are 12 and 24 leases."""

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
