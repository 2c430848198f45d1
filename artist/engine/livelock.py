"""Notices a policy that is woken for ever and never decides anything."""

from __future__ import annotations

from artist.errors import PolicyError
from artist.units import Tick

# So many wake-ups in a row, without a decision or another event, are a livelock in two cases: they
# lie less than a millisecond apart, since no scheduler looks that often, or nothing else can ever
# happen.
WAKES_IN_A_ROW = 1_000_000
SHORT_NAP: Tick = 1_000_000


class Livelock:
    """Counts wake-ups that led to nothing."""

    __slots__ = ("_count", "_events", "_since")

    def __init__(self) -> None:
        self._count = 0
        self._events = 0
        self._since: Tick = 0

    def woken(self, now: Tick, events: int) -> None:
        """A wake-up came. `events`: number of events before this one."""
        if events != self._events:
            self._count = 0
        if not self._count:
            self._since = now
        self._count += 1
        self._events = events + 1

    def decided(self) -> None:
        """The policy did something."""
        self._count = 0

    @property
    def suspected(self) -> bool:
        """Whether it is time for `check`."""
        return self._count >= WAKES_IN_A_ROW

    def check(self, policy: str, now: Tick, *, dead: bool) -> None:
        """Raise, or count from 0 again. `dead`: only wake-ups are left to happen.

        Raises:
            PolicyError: the policy is stuck.
        """
        if dead or now - self._since < self._count * SHORT_NAP:
            raise PolicyError(
                f"{policy} asked to be woken {self._count:,} times in a row, from tick "
                f"{self._since} to {now}, and decided nothing, while nothing else happened"
                f"{' or could happen' if dead else ''}; let it wait for events"
            )
        self._count = 0
