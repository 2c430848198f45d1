"""The original's schemes, by their names in its results: our policies with its rules."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from artist.errors import ConfigError
from artist.policies.original.scheduler import OriginalScheduler
from artist.policies.table import POLICIES

# Settings of the recorded runs: leases of one hour, batches of 1000 iterations. The other settings
# (history of 48 leases, timers of 12 and 24 leases) are the defaults of our policies.
LEASE_S = 3600.0
GRANULARITY = 1000

SCHEMES: Mapping[str, str] = {
    "Dally-auto": "dally-original",
    "Dally-manual": "dally-manual-original",
    "Dally-noWait": "dally-no-wait-original",
    "Dally-fullyCons": "dally-fully-consolidated-original",
    "Tiresias": "tiresias-original",
}
"""Name in the results -> id of the policy."""

# Dally with timers of R leases for a rack and N for the network.
_TIMERS = re.compile(r"Dally-(\d+)-(\d+)")


def registered(scheme: str) -> bool:
    """Whether a scheme has a policy of its own."""
    return SCHEMES.get(scheme) in {entry.id for entry in POLICIES}


def known(scheme: str) -> bool:
    """Whether a scheme can be replayed: it has a policy, or is Dally with other fixed timers."""
    return registered(scheme) or _TIMERS.fullmatch(scheme) is not None


def scheduler(scheme: str, machine_order_seed: int | None = None) -> OriginalScheduler:
    """The policy that runs a scheme as the original does.

    Raises:
        ConfigError: the scheme is not `known`.
    """
    own = {
        "lease_s": LEASE_S,
        "granularity": GRANULARITY,
        "machine_order_seed": machine_order_seed,
    }
    policy = POLICIES[SCHEMES.get(scheme, "dally-manual-original")].load()
    options = policy.Options.model_validate({**_preset(scheme), **own})
    original: OriginalScheduler = policy(options)
    return original


def _preset(scheme: str) -> Mapping[str, Any]:
    if registered(scheme):
        return POLICIES[SCHEMES[scheme]].preset
    timers = _TIMERS.fullmatch(scheme)
    if timers is None:
        raise ConfigError(f"scheme {scheme!r}: expected one of {', '.join(SCHEMES)}")
    rack_s, network_s = (LEASE_S * int(leases) for leases in timers.groups())
    return {"timers": "manual", "machine_timer_s": rack_s, "rack_timer_s": network_s}
