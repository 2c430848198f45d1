"""When jobs of a run took turns on links, and how often they waited so as to keep them."""

from __future__ import annotations

from typing import NamedTuple

from artist.units import Tick


class TurnTaken(NamedTuple):
    """A job that took turns from `start` to `end` at one rate."""

    handle: int
    start: Tick
    end: Tick
    corrections_per_min: float


class TurnsOfRun:
    """What is noted while a run goes on: of each job, since when and with how many corrections."""

    def __init__(self) -> None:
        self.taken: list[TurnTaken] = []
        """In the order in which they ended."""
        self._now: dict[int, tuple[Tick, float]] = {}

    def takes(self, handle: int, now: Tick, corrections_per_min: float) -> None:
        """From now on a job takes turns, with so many corrections."""
        if self._now.get(handle, (now, None))[1] != corrections_per_min:
            self.ends(handle, now)
            self._now[handle] = now, corrections_per_min

    def ends(self, handle: int, now: Tick) -> None:
        """From now on a job takes no turns, if it took any."""
        if handle in self._now:
            start, corrections_per_min = self._now.pop(handle)
            if start < now:
                self.taken.append(TurnTaken(handle, start, now, corrections_per_min))
