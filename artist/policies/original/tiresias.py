"""Tiresias as the original simulator has it: batches, leases, offers, machine order."""

from __future__ import annotations

from artist.policies.original.options import OriginalOptions
from artist.policies.original.rules import TiresiasRule
from artist.policies.original.scheduler import OriginalScheduler


class OriginalTiresias(OriginalScheduler):
    """The original's Tiresias."""

    Options = OriginalOptions

    def __init__(self, options: OriginalOptions) -> None:
        super().__init__(TiresiasRule(), options)
