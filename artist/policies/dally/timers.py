"""Dally's delay timers: how long a job waits before it accepts a level of the cluster.

Source: Sharma et al., *Dally* (IEEE Big Data 2025), sections IV-B2 and IV-B3, Algorithms 1 and 2.

    opens_after(level) = max(timers of all levels inside it)
    timer(level, GPUs) = mean + 2 x sample standard deviation of the recorded waits

Example: the machine timer is 12 h, the rack timer is 24 h. A job accepts a machine after 0 h, a
rack after 12 h and the network after 24 h.

Option `timers` says where a timer comes from: tuned from past waits (`AutoTuner`), or fixed. A
*wait* is recorded when a job accepts GPUs. It is the time since the job entered the queue, and 0
for a running job that moves. It is filed under the tier of the placement and the number of GPUs.
Placements across the whole network are not recorded. Waits older than the window are forgotten.
"""

from __future__ import annotations

import math
from array import array
from collections import deque
from collections.abc import Mapping, Sequence
from operator import truediv
from typing import Any, NamedTuple, overload

from artist.cluster.placement import Placement, tier
from artist.cluster.tree import ClusterTree
from artist.policies.dally.options import DallyOptions
from artist.policies.shared.packing import widest_level
from artist.units import Tick, seconds, ticks


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

    The deviation of a single wait is 0. Without waits there is no timer. `history` is the length of
    the window in ticks. The paper has 2 sample `deviations`. Other values, `population`,
    `by_length` (leave waits out by their length instead of their age) and `bounds` are options for
    ablations.
    """

    def __init__(
        self,
        history: Tick,
        deviations: float,
        *,
        bounds: Bounds | None = None,
        population: bool = False,
        by_length: bool = False,
    ) -> None:
        self._history = history
        self._deviations = deviations
        self._bounds = bounds or Bounds()
        self._population = population
        self._by_length = by_length
        self._waits: dict[tuple[int, int], _Waits] = {}
        self.records = Records()

    def record(self, tree: ClusterTree, level: int, gpus: int, waited: Tick, now: Tick) -> None:
        """`update_demand_delay` of Algorithm 2: a job accepted this level after this wait."""
        if self._by_length and waited > self._history:
            return
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
        if not self._by_length:
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

        The running sums are exact integers. A sum over the list would take time in proportion to
        it: thousands of waits where many jobs arrive at once.
        """
        count = len(waits.samples)
        # Not `/`, which a compiled module may round twice (decision 29).
        mean: float = truediv(waits.sum, count)
        if count < 2:
            return round(mean)
        divisor = count if self._population else count - 1
        squares: float = truediv(count * waits.sum_of_squares - waits.sum * waits.sum, count)
        return round(mean + self._deviations * math.sqrt(squares / divisor))


class Records(Sequence[Mapping[str, Any]]):
    """The recorded waits as rows of a table: each wait, and the timer from then on.

    There may be one row per job, so they are kept as columns. A row is made when it is read.
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
        """Add a row for a recorded wait."""
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
            return [self[row] for row in range(*index.indices(len(self)))]
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

    `samples` holds (tick of the record, wait). `timer` is None while it must be computed again.
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


class DelayTimers:
    """The timers of one policy. They change only when they are tuned."""

    def __init__(self, options: DallyOptions) -> None:
        self._source = options.timers
        self._fixed = (ticks(options.machine_timer_s), ticks(options.rack_timer_s))
        self._tuner = AutoTuner(
            ticks(options.history_s),
            options.deviations,
            bounds=_bounds(options),
            population=options.deviation == "population",
            by_length=options.forgets == "length",
        )
        # Per GPU demand: the answer of `opens_after`, until the timers are tuned again.
        self._tree: ClusterTree | None = None
        self._opens_after: dict[int, list[Tick | None]] = {}
        self._now: Tick = 0

    def tune(self, now: Tick) -> None:
        """Retune the timers from the waits recorded so far that are in the window."""
        self._now = now
        self._opens_after = {}

    def opens_after(self, tree: ClusterTree, gpus: int) -> list[Tick | None]:
        """Per level, machine first: ticks that a job waits before it accepts that level.

        Algorithm 1 checks the timers one after the other. So a level opens when all timers before
        it have expired. None means never, as for levels beyond `widest_level`.
        """
        if tree is not self._tree:  # jobs may have other trees: of the machines that suit them
            self._tree, self._opens_after = tree, {}
        waits = self._opens_after.get(gpus)
        if waits is None:
            waits, widest = [0], widest_level(tree, gpus)
            for level in range(tree.machine, tree.root):
                timer = self._timer(tree, level, gpus) if level < widest else None
                before = waits[-1]
                waits.append(None if timer is None or before is None else max(before, timer))
            self._opens_after[gpus] = waits
        return waits

    def record(self, tree: ClusterTree, placement: Placement, waited: Tick) -> None:
        """Record that a job accepted these GPUs after this wait (Algorithm 1, lines 7 and 15).

        Later questions tune timers from it. Placements across the whole network are not recorded.
        """
        level = tier(tree, placement)
        if level < tree.root and self._source == "auto":
            self._tuner.record(tree, level, placement.gpus, waited, self._now)

    def tables(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """One row per recorded wait, if the timers are tuned."""
        return {"autotuner": self._tuner.records} if self._source == "auto" else {}

    def _timer(self, tree: ClusterTree, level: int, gpus: int) -> Tick | None:
        """Ticks that a job waits for a level before it accepts the next one; None: forever.

        A level that could never hold the job has timer 0 (section IV-B2).
        """
        source = self._source
        if tree.largest(level) < gpus or source == "none":
            return 0
        if source == "unbounded":
            return None
        # The paper has no level between rack and network. Such a level gets the rack's timer.
        fixed = self._fixed[min(level - tree.machine, 1)]
        tuned = self._tuner.bounded(tree, level, gpus, self._now) if source == "auto" else None
        return fixed if tuned is None else tuned


def _bounds(options: DallyOptions) -> Bounds:
    floors, caps = options.floors_s or (0.0, 0.0), options.caps_s
    return Bounds(
        (ticks(floors[0]), ticks(floors[1])),
        (None, None) if caps is None else (ticks(caps[0]), ticks(caps[1])),
    )
