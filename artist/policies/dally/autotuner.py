"""Dally's auto-tuner: how long to wait for a level, from how long others waited for it.

Source: *Dally* (IEEE Big Data 2025), section IV-B3 and Algorithm 2.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Any

from artist.cluster.tree import ClusterTree
from artist.units import Tick, seconds

# Sixteen half units in the last place; the two ways to the same number round less than that.
_ROUNDING = 16 * 2.0**-53


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
        self._waits: dict[tuple[int, int], _Waits] = {}
        self.rows: list[dict[str, Any]] = []

    def record(self, tree: ClusterTree, level: int, gpus: int, waited: Tick, now: Tick) -> None:
        """`update_demand_delay`: a job accepted this level after waiting so long."""
        waits = self._waits.setdefault((level, gpus), _Waits())
        waits.add(now, waited)
        timer = self.bounded(tree, level, gpus, now)
        self.rows.append(
            {
                "time_s": seconds(now),
                "level": tree.levels[level].name,
                "gpus": gpus,
                "waited_s": seconds(waited),
                "samples": len(waits.samples),
                "timer_s": seconds(timer) if timer is not None else None,
            }
        )

    def timer(self, level: int, gpus: int, now: Tick) -> Tick | None:
        """The tuned timer; None without history."""
        waits = self._waits.get((level, gpus))
        if waits is None:
            return None
        waits.forget(now - self._history)
        if not waits.samples:
            return None
        if waits.timer is None:
            waits.timer = self._tuned(waits)
        return waits.timer

    def bounded(self, tree: ClusterTree, level: int, gpus: int, now: Tick) -> Tick | None:
        """The tuned timer within its bounds."""
        timer = self.timer(level, gpus, now)
        return timer if timer is None else self._bounds.held(timer, level - tree.machine)

    def _tuned(self, waits: _Waits) -> Tick:
        """Mean plus deviations, to the nearest tick."""
        count = len(waits.samples)
        mean = waits.sum / count
        if count < 2:
            return round(mean)
        divisor = count if self._population else count - 1
        squares = (count * waits.sum_of_squares - waits.sum**2) / count
        timer = mean + self._deviations * math.sqrt(squares / divisor)
        # The sums are exact, and adding up rounded squares differs by less than so much. Only
        # where that could decide the nearest tick is the list gone through.
        if abs(timer % 1 - 0.5) > _ROUNDING * (timer + mean):
            return round(timer)
        variance = math.fsum((wait - mean) ** 2 for _, wait in waits.samples) / divisor
        return round(mean + self._deviations * math.sqrt(variance))


class _Waits:
    """Waits for one level and demand, with their sums."""

    __slots__ = ("samples", "sum", "sum_of_squares", "timer")

    def __init__(self) -> None:
        self.samples: deque[tuple[Tick, Tick]] = deque()
        self.sum = 0
        self.sum_of_squares = 0
        self.timer: Tick | None = None

    def add(self, now: Tick, waited: Tick) -> None:
        """A job accepted after waiting so long."""
        self.samples.append((now, waited))
        self.sum += waited
        self.sum_of_squares += waited * waited
        self.timer = None

    def forget(self, before: Tick) -> None:
        """Drop the samples that are too old."""
        while self.samples and self.samples[0][0] < before:
            _, waited = self.samples.popleft()
            self.sum -= waited
            self.sum_of_squares -= waited * waited
            self.timer = None
