"""The original's schemes, by their names in its results: artist's policies with its rules."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from artist.errors import ConfigError
from validation.original.policies import (
    Dally,
    DallyFullyConsolidated,
    DallyManual,
    DallyNoWait,
    Tiresias,
)
from validation.original.scheduler import OriginalScheduler

# Settings of the recorded runs: leases of one hour, batches of 1000 iterations. The other settings
# (history of 48 leases, timers of 12 and 24 leases) are the defaults of our policies.
LEASE_S = 3600.0
GRANULARITY = 1000

SCHEMES: Mapping[str, type[Dally] | type[Tiresias]] = {
    "Dally-auto": Dally,
    "Dally-manual": DallyManual,
    "Dally-noWait": DallyNoWait,
    "Dally-fullyCons": DallyFullyConsolidated,
    "Tiresias": Tiresias,
}
"""Name in the results -> the policy."""

# Dally with timers of R leases for a rack and N for the network.
_TIMERS = re.compile(r"Dally-(\d+)-(\d+)")


def known(scheme: str) -> bool:
    """Whether a scheme can be replayed: it has a policy, or is Dally with other fixed timers."""
    return scheme in SCHEMES or _TIMERS.fullmatch(scheme) is not None


def scheduler(scheme: str, machine_order_seed: int | None = None) -> OriginalScheduler:
    """The policy that runs a scheme as the original does.

    Raises:
        ConfigError: the scheme is not `known`.
    """
    if not known(scheme):
        raise ConfigError(f"scheme {scheme!r}: expected one of {', '.join(SCHEMES)}")
    settings: dict[str, Any] = {
        "lease_s": LEASE_S,
        "granularity": GRANULARITY,
        "machine_order_seed": machine_order_seed,
    }
    if timers := _TIMERS.fullmatch(scheme):
        rack_s, network_s = (LEASE_S * int(leases) for leases in timers.groups())
        settings |= {"machine_timer_s": rack_s, "rack_timer_s": network_s}
    policy: Any = SCHEMES.get(scheme, DallyManual)
    original: OriginalScheduler = policy(policy.Options.model_validate(settings))
    return original
