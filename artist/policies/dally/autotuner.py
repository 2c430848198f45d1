"""Dally's auto-tuner: delay timers from past waits.

Source: Sharma et al., *Dally* (IEEE Big Data 2025), section IV-B3 and Algorithm 2.

    timer(level, GPUs) = mean + 2 x sample standard deviation of the recorded waits

A *wait* is recorded when a job accepts GPUs. It is the time since the job entered the queue, and 0
for a running job that moves. It is filed under the tier of the placement and the number of GPUs.
Placements across the whole network are not recorded. Waits older than the window are forgotten.
`timers.py` says what a timer is for.
"""

from __future__ import annotations

import math
from array import array
from collections import deque
from collections.abc import Mapping, Sequence
from operator import truediv
from typing import Any, Final, NamedTuple, overload

from artist.cluster.tree import ClusterTree
from artist.units import Tick, seconds

# Relative rounding error that two ways to compute one timer may differ by: 16 half units in the
# last place of a float.
_ROUNDING: Final = 16 * 2.0**-53


class Bounds(NamedTuple):
    """Floors and caps of tuned timers. Algorithm 2 has none; they are options for ablations.

    Each is a pair: the machine's timer, and the timers of all levels further out.
    """

    floors: tuple[Tick, Tick] = (0, 0)
    caps: tuple[Tick | None, Tick | None] = (None, None)
    """None for no cap. A cap below the floor wins."""

    def held(self, timer: Tick, outward: int) -> Tick:
        """The timer within its bounds. `outward` counts levels from the machine, which is 0."""
        pair_index = min(outward, 1)
        cap = self.caps[pair_index]
        timer = max(timer, self.floors[pair_index])
        return timer if cap is None else min(timer, cap)


class AutoTuner:
    """Algorithm 2: one list of waits per level and GPU demand, and the timer of each list.

    The deviation of a single wait is 0. Without waits there is no timer. `history` is the length
    of the window. Another number of `deviations`, the deviation of the `population` and `bounds`
    are options for ablations.
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
        self.records = Records()

    def record(self, tree: ClusterTree, level: int, gpus: int, waited: Tick, now: Tick) -> None:
        """`update_demand_delay` of Algorithm 2: a job accepted this level after this wait."""
        waits = self._waits.setdefault((level, gpus), _Waits())
        waits.add(now, waited)
        timer = self.bounded(tree, level, gpus, now)
        assert timer is not None  # the window holds this wait
        self.records.add(now, tree.levels[level].name, gpus, waited, len(waits.samples), timer)

    def timer(self, level: int, gpus: int, now: Tick) -> Tick | None:
        """The tuned timer without bounds; None if the window holds no wait."""
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
        """The tuned timer within its bounds; None if the window holds no wait."""
        timer = self.timer(level, gpus, now)
        return None if timer is None else self._bounds.held(timer, level - tree.machine)

    def _tuned(self, waits: _Waits) -> Tick:
        """Mean plus deviations, rounded to the nearest tick.

        The result is that of a sum over the list, but mostly only running sums are used.
        """
        count = len(waits.samples)
        # Not `/`, which a compiled module may round twice (decision 29).
        mean: float = truediv(waits.sum, count)
        if count < 2:
            return round(mean)
        divisor = count if self._population else count - 1
        squares: float = truediv(count * waits.sum_of_squares - waits.sum * waits.sum, count)
        timer = mean + self._deviations * math.sqrt(squares / divisor)
        # The running sums are exact integers. The sum over the list adds rounded squares, so it
        # may differ a little. Go through the list only where that could change the nearest tick.
        if abs(timer % 1 - 0.5) > _ROUNDING * (timer + mean):
            return round(timer)
        variance = math.fsum((wait - mean) ** 2 for _, wait in waits.samples) / divisor
        return round(mean + self._deviations * math.sqrt(variance))


class Records(Sequence[Mapping[str, Any]]):
    """The recorded waits, as rows of a table: what was recorded when, and the timer from then on.

    There may be one per job, so they are kept as columns. A row is made when it is read.
    """

    __slots__ = ("_gpus", "_level", "_samples", "_time_s", "_timer_s", "_waited_s")

    def __init__(self) -> None:
        self._time_s = array("d")
        self._level: list[str] = []
        self._gpus = array("i")
        self._waited_s = array("d")
        self._samples = array("i")
        self._timer_s = array("d")

    def add(
        self, now: Tick, level: str, gpus: int, waited: Tick, samples: int, timer: Tick
    ) -> None:
        """A wait was recorded."""
        self._time_s.append(seconds(now))
        self._level.append(level)
        self._gpus.append(gpus)
        self._waited_s.append(seconds(waited))
        self._samples.append(samples)
        self._timer_s.append(seconds(timer))

    def __len__(self) -> int:
        return len(self._level)

    @overload
    def __getitem__(self, index: int) -> Mapping[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Mapping[str, Any]]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [self[one] for one in range(*index.indices(len(self)))]
        return {
            "time_s": self._time_s[index],
            "level": self._level[index],
            "gpus": self._gpus[index],
            "waited_s": self._waited_s[index],
            "samples": self._samples[index],
            "timer_s": self._timer_s[index],
        }


class _Waits:
    """The waits of one level and demand, with the sums of waits and of their squares.

    `samples` holds (time of the record, wait). `timer` is None until it is computed again.
    """

    __slots__ = ("samples", "sum", "sum_of_squares", "timer")

    def __init__(self) -> None:
        self.samples: deque[tuple[Tick, Tick]] = deque()
        self.sum = 0
        self.sum_of_squares = 0
        self.timer: Tick | None = None

    def add(self, now: Tick, waited: Tick) -> None:
        """Record a wait."""
        self.samples.append((now, waited))
        self.sum += waited
        self.sum_of_squares += waited * waited
        self.timer = None

    def forget(self, before: Tick) -> None:
        """Drop the waits that were recorded before a tick."""
        while self.samples and self.samples[0][0] < before:
            _, waited = self.samples.popleft()
            self.sum -= waited
            self.sum_of_squares -= waited * waited
            self.timer = None
