"""The original simulator's auto-tuner. All times are in leases.

    timer = mean + 2 x population deviation of the recorded waits, rounded up, within floor and cap

Decision 4 (docs/decisions/0004-dally-rules.md) compares it with Algorithm 2 of the Dally paper.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

MACHINE, RACK = 0, 1
"""The two lists of waits per GPU demand."""

# Floors of the two timers in leases. The cap of the rack's timer is this share of the history.
RACK_FLOOR, NETWORK_FLOOR = 6, 12
RACK_CAP = 0.8


class OriginalTuner:
    """Two lists of waits per GPU demand, and the timer of each.

    The machine's list gives the wait for a rack, the rack's list gives the wait for the network.
    """

    def __init__(
        self,
        history: float,
        deviations: float,
        *,
        floors: tuple[float, ...],
        caps: tuple[float, ...],
    ) -> None:
        """`floors` and `caps` hold two numbers: for the machine's list and the rack's; caps win.

        `history` is the age, in leases, above which a wait may be forgotten (`record`).
        """
        self._history = history
        self._deviations = deviations
        self._floors = floors
        self._caps = caps
        self._waits: dict[tuple[int, int], list[tuple[float, float]]] = {}
        self._tuned: dict[int, tuple[float, float]] = {}
        self.rows: list[dict[str, Any]] = []

    def record(self, level: int, gpus: int, waited: float, now: float) -> None:
        """Record a wait of at least one lease, and forget some waits that are too old.

        `level` is MACHINE or RACK. Forgetting skips the entry behind each entry that it removes,
        as the original simulator does.
        """
        if waited < 1:
            return
        rack, network = self.timers(gpus)
        waits = self._waits.setdefault((level, gpus), [])
        waits.append((now, waited))
        index = 0
        while index < len(waits):
            if now - waits[index][0] > self._history:
                del waits[index]
            index += 1
        timer = self._timer(level, gpus)
        self._tuned[gpus] = (timer, network) if level == MACHINE else (rack, timer)
        self.rows.append(
            {
                "time_leases": now,
                "level": ("machine", "rack")[level],
                "gpus": gpus,
                "waited_leases": waited,
                "samples": len(waits),
                "timer_leases": timer,
            }
        )

    def timers(self, gpus: int) -> tuple[float, float]:
        """Waits after which a rack and the network are accepted; both count from one instant."""
        if gpus not in self._tuned:
            self._tuned[gpus] = (self._timer(MACHINE, gpus), self._timer(RACK, gpus))
        return self._tuned[gpus]

    def _timer(self, level: int, gpus: int) -> float:
        """The timer of one list; one lease without samples, before floor and cap."""
        waits = [waited for _, waited in self._waits.get((level, gpus), ())]
        spread = self._deviations * float(np.std(waits)) if waits else 0.0
        timer = math.ceil(float(np.mean(waits)) + spread) if waits else 1
        return min(self._caps[level], max(self._floors[level], timer))
