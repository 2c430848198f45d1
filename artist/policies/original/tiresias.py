"""Tiresias as the original simulator has it: policy `tiresias-original`.

Source: the simulator that the authors of Dally (IEEE Big Data 2025) published.

**What is where.** As in `dally.py`; the priority and the levels that a job accepts are in
`rules.py`, `TiresiasRule`.

**The rule.**

1. Waiting jobs bid at every offer of free GPUs. The job with the least attained service
   (GPU-seconds) comes first; among equals, the job that has waited longest. A bid that does not fit
   is passed.
2. Jobs of most models are consolidated; a fixed list names the others (`shared/skew.py`). Free GPUs
   and sizes open and close levels. There are no timers (`TiresiasRule.levels`).
3. A job whose lease ended gives its GPUs back and waits. There are no queues and no promotion.

**Deviations** from the original simulator: `scheduler.py`.
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
