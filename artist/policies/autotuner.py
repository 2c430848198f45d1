"""Dally's auto-tuner: how long to wait for a level, from how long others waited for it.

Source: *Dally* (IEEE Big Data 2025), section IV-B3 and Algorithm 2.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from artist.cluster.tree import ClusterTree
from artist.units import Tick, seconds


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a tuned timer is held to; Algorithm 2 has no bounds."""

    floors: tuple[Tick, Tick] = (0, 0)
    """Of the machine's timer, and of those of levels further out."""
    caps: tuple[Tick | None, Tick | None] = (None, None)
    """They win over floors."""

    def held(self, timer: Tick, outward: int) -> Tick:
        """A timer within the bounds; `outward` counts levels from the machine."""
        which = min(outward, 1)
        cap = self.caps[which]
        timer = max(timer, self.floors[which])
        return timer if cap is None else min(timer, cap)


class AutoTuner:
    """Algorithm 2.

    Keeps one list of waits per level and GPU demand. A timer is the mean of
    the list plus two sample standard deviations (0 for fewer than two samples);
    without samples there is none. Other numbers of deviations, the population's deviation
    and bounds are options for ablations.
    """

    def __init__(
        self,
        history: Tick,
        deviations: float,
        *,
        bounds: Bounds | None = None,
        population: bool = False,
    ) -> None:
        self._history = history
        self._deviations = deviations
        self._bounds = bounds or Bounds()
        self._population = population
        self._waits: dict[tuple[int, int], deque[tuple[Tick, Tick]]] = {}
        self._timers: dict[tuple[int, int], Tick] = {}
        self.rows: list[dict[str, Any]] = []

    def record(self, tree: ClusterTree, level: int, gpus: int, waited: Tick, now: Tick) -> None:
        """`update_demand_delay`: a job accepted this level after waiting so long."""
        self._waits.setdefault((level, gpus), deque()).append((now, waited))
        self._timers.pop((level, gpus), None)
        timer = self.bounded(tree, level, gpus, now)
        self.rows.append(
            {
                "time_s": seconds(now),
                "level": tree.levels[level].name,
                "gpus": gpus,
                "waited_s": seconds(waited),
                "samples": len(self._waits[level, gpus]),
                "timer_s": seconds(timer) if timer is not None else None,
            }
        )

    def timer(self, level: int, gpus: int, now: Tick) -> Tick | None:
        """The tuned timer; None without history."""
        waits = self._waits.get((level, gpus))
        if not waits:
            return None
        while waits and waits[0][0] < now - self._history:
            waits.popleft()
            self._timers.pop((level, gpus), None)
        if not waits:
            return None
        if (level, gpus) not in self._timers:
            self._timers[level, gpus] = self._tuned([waited for _, waited in waits])
        return self._timers[level, gpus]

    def bounded(self, tree: ClusterTree, level: int, gpus: int, now: Tick) -> Tick | None:
        """The tuned timer within its bounds."""
        timer = self.timer(level, gpus, now)
        return timer if timer is None else self._bounds.held(timer, level - tree.machine)

    def _tuned(self, waits: Sequence[Tick]) -> Tick:
        count = len(waits)
        mean = sum(waits) / count
        if count < 2:
            return round(mean)
        divisor = count if self._population else count - 1
        variance = math.fsum((wait - mean) ** 2 for wait in waits) / divisor
        return round(mean + self._deviations * math.sqrt(variance))
