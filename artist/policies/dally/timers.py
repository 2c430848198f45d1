"""Dally's delay timers: how long a job waits before it accepts a level of the cluster.

Source: Sharma et al., *Dally* (IEEE Big Data 2025), section IV-B2 and Algorithm 1.

    opens_after(level) = max(timers of all levels inside it)

Example: the machine timer is 12 h, the rack timer is 24 h. A job accepts a machine after 0 h, a
rack after 12 h and the network after 24 h.

Option `timers` says where a timer comes from: from past waits (`autotuner.py`), or fixed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from artist.cluster.placement import Placement, tier
from artist.cluster.tree import ClusterTree
from artist.policies.dally.autotuner import AutoTuner, Bounds
from artist.policies.dally.options import DallyOptions
from artist.units import Tick, ticks


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
        )
        # Per GPU demand: the answer of `opens_after` since the timers were tuned.
        self._opens_after: dict[int, list[Tick | None]] = {}
        self._now: Tick = 0

    def tune(self, now: Tick) -> None:
        """Tune the timers anew from all waits recorded so far, if these are in the window."""
        self._now = now
        self._opens_after = {}

    def opens_after(self, tree: ClusterTree, gpus: int) -> list[Tick | None]:
        """Per level, machine first: how long a job waits before it accepts that level.

        Algorithm 1 passes the timers one after the other. So a level opens when all timers before
        it have expired. None stands for "never".
        """
        waits = self._opens_after.get(gpus)
        if waits is None:
            waits = [0]
            for level in range(tree.machine, tree.root):
                timer = self._timer(tree, level, gpus)
                before = waits[-1]
                waits.append(None if timer is None or before is None else max(before, timer))
            self._opens_after[gpus] = waits
        return waits

    def record(self, tree: ClusterTree, placement: Placement, waited: Tick) -> None:
        """A job accepted these GPUs after this wait (Algorithm 1, lines 7 and 15).

        The auto-tuner learns from it, for the questions to come. Placements across the whole
        network are not recorded.
        """
        level = tier(tree, placement)
        if level < tree.root and self._source == "auto":
            self._tuner.record(tree, level, placement.gpus, waited, self._now)

    def tables(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """One row per recorded wait, if the timers are tuned."""
        return {"autotuner": self._tuner.records} if self._source == "auto" else {}

    def _timer(self, tree: ClusterTree, level: int, gpus: int) -> Tick | None:
        """How long a job waits for a level before it accepts the next one; None for ever.

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
