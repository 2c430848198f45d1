"""The event queue: a total order over everything that happens.

Events are ordered by `(tick, kind, serial)`: first by time, then by kind in the order written in
`EventKind`, then by when they were scheduled in this run. So ties never depend on chance.

No event is ever removed before its time. An event of a running job carries the job's epoch, and the
engine drops the event if the job has a newer epoch by then.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from heapq import heapify, heappop, heappush
from itertools import chain
from typing import Final, TypeAlias

from artist.units import Tick


class EventKind(IntEnum):
    """What can happen. Simultaneous events are handled in this order."""

    FINISH = 0
    """First, so that a finished job frees its GPUs whatever else happens at this tick."""
    LEASE_END = 1
    """Before jobs arrive that could compete for the GPUs."""
    RATE_END = 2
    """The rate function wants to be asked again, after finished jobs have left."""
    OUTSIDE = 3
    """GPUs leave or enter service, after finished jobs have left and before others arrive."""
    ARRIVAL = 4
    """After everything that frees GPUs, so that a new job sees them."""
    WAKE = 5
    """Last, so that a policy that asked to be woken sees the whole instant."""


# Module names, because looking a member up in its class takes ten times as long.
FINISH: Final = EventKind.FINISH
LEASE_END: Final = EventKind.LEASE_END
RATE_END: Final = EventKind.RATE_END
OUTSIDE: Final = EventKind.OUTSIDE
ARRIVAL: Final = EventKind.ARRIVAL
WAKE: Final = EventKind.WAKE

Event: TypeAlias = tuple[Tick, EventKind, int, int, int]
"""Tick, kind, serial, handle of the job (-1 where there is none), epoch of the job."""

# Up to this many events, a heap alone is fast enough: it stays in the processor's caches. Runs of a
# few hundred jobs do not exceed it.
_FEW: Final = 1_000
# A day of the queue is 2**36 ns, about a minute. With 30,000 running jobs and leases of an hour, it
# holds a few hundred events.
_DAY_BITS: Final = 36


class EventQueue:
    """A priority queue of events with a serial number per run.

    A heap of very many events is slow, since each step reads other memory. So once there are more
    than `_FEW` events, the heap holds only those of the present **day**. Later events wait
    unsorted, by day, until their day comes (a calendar queue: Brown, *CACM* 31(10), 1988). The
    order of events is the same.
    """

    __slots__ = ("_by_day", "_day_end", "_days", "_heap", "_later", "_serial")

    def __init__(self) -> None:
        self._heap: list[Event] = []
        self._serial = 0
        self._by_day = False
        self._day_end: Tick = 0
        self._later: dict[int, list[Event]] = {}
        self._days: list[int] = []  # a heap

    def __iter__(self) -> Iterator[Event]:
        """All events, in no particular order."""
        return chain(self._heap, *self._later.values())

    def push(self, tick: Tick, kind: EventKind, handle: int, epoch: int = 0) -> None:
        """Schedule an event."""
        event = (tick, kind, self._serial, handle, epoch)
        self._serial += 1
        if self._by_day and tick >= self._day_end:
            self._put_off(event)
            return
        heappush(self._heap, event)
        if not self._by_day and len(self._heap) > _FEW:
            self._go_by_day()

    def next_events(self) -> list[Event]:
        """A heap whose first entry is the next event; empty if there is none. Read only.

        The same heap stays up to date until it is empty. Then call this again.
        """
        if not self._heap and self._days:
            day = heappop(self._days)
            self._heap.extend(self._later.pop(day))
            heapify(self._heap)
            self._day_end = day + 1 << _DAY_BITS
        return self._heap

    def pop(self) -> Event:
        """Remove and return the first of `next_events`."""
        return heappop(self._heap)

    def without(self, *kinds: EventKind) -> EventQueue:
        """A queue without events of these kinds. The other events keep their serial numbers."""
        left = EventQueue()
        left._heap = [event for event in self if event[1] not in kinds]
        heapify(left._heap)
        left._serial = self._serial
        return left

    def _put_off(self, event: Event) -> None:
        day = event[0] >> _DAY_BITS
        if day not in self._later:
            self._later[day] = []
            heappush(self._days, day)
        self._later[day].append(event)

    def _go_by_day(self) -> None:
        """From now on, keep only the events of the present day in the heap."""
        self._by_day = True
        self._day_end = (self._heap[0][0] >> _DAY_BITS) + 1 << _DAY_BITS
        events = self._heap[:]
        self._heap.clear()  # not a new list: the simulator may be reading this one
        for event in events:
            if event[0] < self._day_end:
                heappush(self._heap, event)
            else:
                self._put_off(event)
