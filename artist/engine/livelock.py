"""Notices a policy that is woken for ever, or far too often."""

from __future__ import annotations

from artist.errors import PolicyError
from artist.units import Tick

# So many wake-ups in a row, without a decision or another event, are a livelock if nothing else can
# ever happen.
WAKES_IN_A_ROW = 1_000_000
# So often may failed GPUs come back to a whole cluster on which the policy leaves all jobs waiting.
IDLE_OUTAGES = 1_000
# At so many instants in a row a policy was woken, and nothing else happened. If they lie less than
# a millisecond apart it is a storm, whatever the policy decides, since no scheduler looks that
# often.
STORM = 100_000
SHORT_NAP: Tick = 1_000_000


class Livelock:
    """Counts wake-ups in a row, with nothing else between them."""

    __slots__ = ("_count", "_events", "_first", "_idle", "_instants", "_last", "_since")

    def __init__(self) -> None:
        self._count = 0  # wake-ups that led to nothing
        self._since: Tick = 0
        self._instants = 0  # instants with wake-ups, whatever they led to
        self._first: Tick = 0
        self._last: Tick = -1
        self._events = 0
        self._idle = 0  # answers that left all jobs waiting for nothing but outages

    def woken(self, now: Tick, events: int) -> None:
        """A wake-up came. `events`: number of events before this one."""
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
        """The policy did something."""
        self._count = 0

    @property
    def suspected(self) -> bool:
        """Whether it is time for `check`."""
        return self._instants >= STORM or self._count >= WAKES_IN_A_ROW

    def check_idle(self, policy: str, idle: bool) -> None:
        """Count answers that leave jobs waiting on a whole cluster, where failures never end.

        Raises:
            PolicyError: there were too many in a row.
        """
        self._idle = self._idle + 1 if idle else 0
        if self._idle >= IDLE_OUTAGES:
            raise PolicyError(
                f"{policy} left all jobs waiting on free GPUs {self._idle:,} times in a row, while "
                "nothing but failures could happen; let it start them"
            )

    def check(self, policy: str, now: Tick, *, dead: bool) -> None:
        """Raise, or count from 0 again. `dead`: only wake-ups are left to happen.

        Raises:
            PolicyError: the policy is stuck, or looks too often.
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
