"""Detects a policy that asks to be woken forever, or far too often."""

from __future__ import annotations

from artist.errors import PolicyError
from artist.units import Tick

# Wake-ups in a row, without a decision or another event, that are a livelock if nothing else can
# ever happen.
WAKES_IN_A_ROW = 1_000_000
# Answers in a row that may leave all jobs waiting on a whole cluster, where only failures can
# happen.
IDLE_OUTAGES = 1_000
# Instants in a row with nothing but wake-ups. If they are less than a millisecond apart on average,
# it is a storm, whatever the policy decides, since no scheduler looks that often.
STORM = 100_000
SHORT_NAP: Tick = 1_000_000


class Livelock:
    """Counts wake-ups in a row, without any other event between them."""

    __slots__ = ("_count", "_events", "_first", "_idle", "_instants", "_last", "_since")

    def __init__(self) -> None:
        self._count = 0  # wake-ups that led to nothing
        self._since: Tick = 0
        self._instants = 0  # instants with wake-ups, whatever they led to
        self._first: Tick = 0
        self._last: Tick = -1
        self._events = 0
        self._idle = 0  # answers in a row that left all jobs waiting while only outages can happen

    def woken(self, now: Tick, events: int) -> None:
        """Count a wake-up. `events` is the number of all events before it."""
        if events != self._events:
            self._count = self._instants = 0
        if not self._count:
            self._since = now
        if not self._instants:
            self._first = now
        if now != self._last or not self._instants:
            self._instants += 1
        self._count += 1
        self._last = now
        self._events = events + 1

    def decided(self) -> None:
        """Note that the policy decided something."""
        self._count = 0

    @property
    def suspected(self) -> bool:
        """Whether it is time for `check`."""
        return self._instants >= STORM or self._count >= WAKES_IN_A_ROW

    def check_idle(self, policy: str, idle: bool) -> None:
        """Count answers that leave all jobs waiting on a whole cluster, where only failures happen.

        Raises:
            PolicyError: there were `IDLE_OUTAGES` in a row.
        """
        self._idle = self._idle + 1 if idle else 0
        if self._idle >= IDLE_OUTAGES:
            raise PolicyError(
                f"{policy} left all jobs waiting on free GPUs {self._idle:,} times in a row, while "
                "nothing but failures could happen; let it start them"
            )

    def check(self, policy: str, now: Tick, *, dead: bool) -> None:
        """Raise, or count from 0 again. `dead`: nothing but wake-ups can happen any more.

        Raises:
            PolicyError: the policy is stuck, or asks to be woken too often.
        """
        if self._instants >= STORM:
            if now - self._first < (self._instants - 1) * SHORT_NAP:
                raise PolicyError(
                    f"{policy} asked to be woken at {self._instants:,} instants in a row, from "
                    f"tick {self._first} to {now}, less than a millisecond apart, while nothing "
                    "else happened; let it wait for events"
                )
            self._instants = 0
        if self._count >= WAKES_IN_A_ROW:
            if dead:
                raise PolicyError(
                    f"{policy} asked to be woken {self._count:,} times in a row, from tick "
                    f"{self._since} to {now}, and decided nothing, while nothing else happened or "
                    "could happen; let it wait for events"
                )
            self._count = 0
