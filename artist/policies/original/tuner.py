"""The auto-tuner as the original simulator has it; times in leases.

It differs from Algorithm 2 of the paper (docs/decisions/0004-dally-rules.md).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

MACHINE, RACK = 0, 1
"""The two lists of waits per GPU demand."""

# Floors of the tuned timers in leases, and the cap of the rack's timer against the history.
RACK_FLOOR, NETWORK_FLOOR = 6, 12
RACK_CAP = 0.8


class OriginalTuner:
    """Two lists of waits per GPU demand, and the two timers made of them."""

    def __init__(
        self,
        history: float,
        deviations: float,
        *,
        floors: tuple[float, ...],
        caps: tuple[float, ...],
    ) -> None:
        """`floors` and `caps`: of the machine's list and of the rack's; caps win."""
        self._history = history
        self._deviations = deviations
        self._floors = floors
        self._caps = caps
        self._waits: dict[tuple[int, int], list[tuple[float, float]]] = {}
        self._tuned: dict[int, tuple[float, float]] = {}
        self.rows: list[dict[str, Any]] = []

    def record(self, which: int, gpus: int, waited: float, now: float) -> None:
        """Remember a wait of at least one lease, and forget some that are too old.

        Forgetting skips the entry behind each one that it removes, as the original does.
        """
        if waited < 1:
            return
        rack, network = self.timers(gpus)
        waits = self._waits.setdefault((which, gpus), [])
        waits.append((now, waited))
        index = 0
        while index < len(waits):
            if now - waits[index][0] > self._history:
                del waits[index]
            index += 1
        timer = self._timer(which, gpus)
        self._tuned[gpus] = (timer, network) if which == MACHINE else (rack, timer)
        self.rows.append(
            {
                "time_leases": now,
                "level": ("machine", "rack")[which],
                "gpus": gpus,
                "waited_leases": waited,
                "samples": len(waits),
                "timer_leases": timer,
            }
        )

    def timers(self, gpus: int) -> tuple[float, float]:
        """When a rack and when the network is accepted, both from the same instant."""
        if gpus not in self._tuned:
            self._tuned[gpus] = (self._timer(MACHINE, gpus), self._timer(RACK, gpus))
        return self._tuned[gpus]

    def _timer(self, which: int, gpus: int) -> float:
        """Mean plus two population deviations, rounded up; one lease without samples."""
        waits = [waited for _, waited in self._waits.get((which, gpus), ())]
        spread = self._deviations * float(np.std(waits)) if waits else 0.0
        tuned = math.ceil(float(np.mean(waits)) + spread) if waits else 1
        return min(self._caps[which], max(self._floors[which], tuned))
