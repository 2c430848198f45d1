"""The event queue: a total order over everything that happens.

Events are ordered by `(tick, kind, serial)`: first by time, then by kind in the order written in
`EventKind`, then by when they were scheduled in this run. So ties never depend on chance.

Nothing is ever removed from the queue. An event of a running job carries the job's epoch, and the
engine drops it if the job has a newer epoch by then.
"""

from __future__ import annotations

from enum import IntEnum
from heapq import heapify, heappop, heappush
from typing import Final, TypeAlias

from artist.units import Tick


class EventKind(IntEnum):
    """What can happen. Simultaneous events are handled in this order."""

    FINISH = 0
    """First, so that a job that is done frees its GPUs whatever else happens at this tick."""
    LEASE_END = 1
    """Before jobs arrive that could compete for the GPUs."""
    RATE_END = 2
    """The rate function wants to be asked again. After finished jobs have left."""
    OUTSIDE = 3
    """GPUs leave or enter service. After jobs have left, before others arrive."""
    ARRIVAL = 4
    """After everything that frees GPUs, so that a new job sees them."""
    WAKE = 5
    """Last, so that a policy that wanted to be asked sees the whole instant."""


# As names of their own: looking a member up in its class takes ten times as long.
FINISH: Final = EventKind.FINISH
LEASE_END: Final = EventKind.LEASE_END
RATE_END: Final = EventKind.RATE_END
OUTSIDE: Final = EventKind.OUTSIDE
ARRIVAL: Final = EventKind.ARRIVAL
WAKE: Final = EventKind.WAKE

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

    def without(self, *kinds: EventKind) -> EventQueue:
        """A queue of the other events, with the same serial numbers."""
        left = EventQueue()
        left.heap = [event for event in self.heap if event[1] not in kinds]
        heapify(left.heap)
        left._serial = self._serial
        return left
