"""Tiresias as the original simulator has it (policy `tiresias-original`).

`scheduler.py` has the allocator, `rules.py` the rule: least attained service, a fixed list of
models that are not consolidated, no queues, no promotion, no timers.
"""

from __future__ import annotations

from artist.policies.original.options import OriginalOptions
from artist.policies.original.rules import TiresiasRule
from artist.policies.original.scheduler import OriginalScheduler


class OriginalTiresias(OriginalScheduler):
    """The original simulator's Tiresias."""

    Options = OriginalOptions

    def __init__(self, options: OriginalOptions) -> None:
        super().__init__(TiresiasRule(), options)
