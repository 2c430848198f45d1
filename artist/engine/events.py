"""The event queue: a total order over everything that happens.

Events are ordered by `(tick, kind, serial)`: time first, then the kind in the
order written in `EventKind`, then the order in which they were scheduled in this run.
Events of a running job carry its epoch; the engine drops those of an older epoch, so
nothing ever needs to be removed from the queue.
"""

from __future__ import annotations

import heapq
from enum import IntEnum
from typing import NamedTuple

from artist.units import Tick


class EventKind(IntEnum):
    """What can happen, in the order in which simultaneous events are handled."""

    FINISH = 0
    """First: a job that is done frees its GPUs whatever else ends at this tick."""
    LEASE_END = 1
    """Before anything that could compete for the GPUs arrives."""
    RATE_END = 2
    """A rate asked to be asked again: after jobs have left, before others come."""
    ARRIVAL = 3
    """After everything that frees GPUs, so that a new job sees them."""
    WAKE = 4
    """Last: whoever wanted to look at the cluster sees the whole instant."""


class Event(NamedTuple):
    """One entry of the queue. `job` is the job's order (-1 for a wake-up)."""

    tick: Tick
    kind: EventKind
    serial: int
    job: int
    epoch: int


class EventQueue:
    """A priority queue of events with a serial number per run."""

    __slots__ = ("_heap", "_serial")

    def __init__(self) -> None:
        self._heap: list[Event] = []
        self._serial = 0

    def push(self, tick: Tick, kind: EventKind, job: int, epoch: int = 0) -> None:
        """Schedule an event."""
        heapq.heappush(self._heap, Event(tick, kind, self._serial, job, epoch))
        self._serial += 1

    def pop(self) -> Event:
        """Remove and return the first event."""
        return heapq.heappop(self._heap)

    @property
    def next_tick(self) -> Tick | None:
        """Tick of the first event, None when the queue is empty."""
        return self._heap[0].tick if self._heap else None
