"""Dally as the original simulator has it, from Dally's options. It counts time in leases."""

from __future__ import annotations

import math

from artist.policies.dally.options import DallyOptions
from artist.policies.original.rules import DallyRule
from artist.policies.original.scheduler import OriginalScheduler
from artist.policies.original.tuner import NETWORK_FLOOR, RACK_CAP, RACK_FLOOR, OriginalTuner


def original_dally(options: DallyOptions) -> OriginalScheduler:
    """The scheduler with the original's timers: 12 and 24 hours are 12 and 24 leases of one."""
    lease_s = options.lease_s
    timers = {
        "auto": None,
        "manual": (options.machine_timer_s / lease_s, options.rack_timer_s / lease_s),
        "none": (0.0, 0.0),
        "unbounded": (math.inf, math.inf),
    }
    rule = DallyRule(lease_s, timers[options.timers], _tuner(options))
    return OriginalScheduler(rule, lease_s, options.granularity, options.machine_order_seed)


def _tuner(options: DallyOptions) -> OriginalTuner:
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
