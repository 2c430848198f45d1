"""The event queue: a total order over everything that happens.

Events are ordered by `(tick, kind, serial)`: time first, then the kind in the
order written in `EventKind`, then the order in which they were scheduled in this run.
Events of a running job carry its epoch; the engine drops those of an older epoch, so
nothing ever needs to be removed from the queue.
"""

from __future__ import annotations

from enum import IntEnum
from heapq import heappop, heappush
from typing import TypeAlias

from artist.units import Tick


class EventKind(IntEnum):
    """What can happen, in the order in which simultaneous events are handled."""

    FINISH = 0
    """First: a job that is done frees its GPUs whatever else happens at this tick."""
    LEASE_END = 1
    """Before anything that could compete for the GPUs arrives."""
    RATE_END = 2
    """A rate asked to be asked again: after finished jobs have left."""
    OUTSIDE = 3
    """GPUs leave or enter service: after jobs have left, before others come."""
    ARRIVAL = 4
    """After everything that frees GPUs, so that a new job sees them."""
    WAKE = 5
    """Last: whoever wanted to look at the cluster sees the whole instant."""


# By themselves: looking a member up in its class takes ten times as long.
FINISH, LEASE_END, RATE_END, OUTSIDE, ARRIVAL, WAKE = EventKind

Event: TypeAlias = tuple[Tick, EventKind, int, int, int]
"""Tick, kind, serial, handle of the job (-1 where there is none), epoch of the job."""


class EventQueue:
    """A priority queue of events with a serial number per run."""

    __slots__ = ("_serial", "heap")

    def __init__(self) -> None:
        self.heap: list[Event] = []
        """Read only; the first entry is the next event."""
        self._serial = 0

    def push(self, tick: Tick, kind: EventKind, handle: int, epoch: int = 0) -> None:
        """Schedule an event."""
        heappush(self.heap, (tick, kind, self._serial, handle, epoch))
        self._serial += 1

    def pop(self) -> Event:
        """Remove and return the first event."""
        return heappop(self.heap)

    @property
    def next_tick(self) -> Tick | None:
        """Tick of the first event, None when the queue is empty."""
        return self.heap[0][0] if self.heap else None
