"""Tiresias as the original simulator has it, in full: batches, leases, offers, machine order."""

from __future__ import annotations

from artist.policies.original.rules import TiresiasRule
from artist.policies.original.scheduler import OriginalScheduler


def original_tiresias(
    lease_s: float, granularity: int, machine_order_seed: int | None
) -> OriginalScheduler:
    """The scheduler."""
    return OriginalScheduler(TiresiasRule(), lease_s, granularity, machine_order_seed)
