"""Tiresias as the original simulator has it, in full: batches, leases, offers, machine order."""

from __future__ import annotations

from artist.policies.original import OriginalScheduler
from artist.policies.original_rules import TiresiasRule


def original_tiresias(
    lease_s: float, granularity: int, machine_order_seed: int | None
) -> OriginalScheduler:
    """The scheduler."""
    return OriginalScheduler(TiresiasRule(), lease_s, granularity, machine_order_seed)
