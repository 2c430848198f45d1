"""Events that are not in the trace: GPUs leave service, come back, or are announced to leave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias

from artist.cluster.placement import Placement
from artist.units import Tick


@dataclass(frozen=True, slots=True)
class Outage:
    """Why GPUs leave service, and what that does to the jobs on them.

    `kind` and `unit` say what fails or is maintained, such as `machine` 3, `rack` 0, `gpu` 17, or
    `link` 5 (the uplink of unit 5). `until` is when it will be back.
    """

    kind: str
    unit: int
    until: Tick
    failed: bool = True
    """Whether jobs fall back to their last checkpoint. Otherwise, as before maintenance, they save
    their state and lose no whole iteration."""

    @property
    def text(self) -> str:
        """What happened, in a few words: `machine 3 failed`."""
        return f"{self.kind} {self.unit} {'failed' if self.failed else 'in maintenance'}"


@dataclass(frozen=True, slots=True)
class Withdraw:
    """Take GPUs out of service at a tick.

    The free GPUs of a leaf leave first. If they are too few, jobs there lose all their GPUs, the
    latest arrival first, until enough are free.

    A `position` means one particular GPU of one leaf. The leaf's GPUs in service are numbered:
    first those of running jobs, by handle, then the free ones. The GPU at this position leaves, and
    the job that holds it loses all its GPUs.

    Without an `outage`, jobs keep their whole iterations. GPUs that a `Notice` keeps out of service
    count here as in service and free.
    """

    at: Tick
    placement: Placement
    outage: Outage | None = None
    position: int | None = None


@dataclass(frozen=True, slots=True)
class Restore:
    """Bring withdrawn GPUs back at a tick."""

    at: Tick
    placement: Placement


@dataclass(frozen=True, slots=True)
class Notice:
    """Announce at a tick that whole leaves will leave service at `until`, by a `Withdraw`.

    From then on their free GPUs are out of service, and so is each GPU there that a job gives back.
    `outage` says what is to come.
    """

    at: Tick
    leaves: tuple[int, ...]
    until: Tick
    outage: Outage


OutsideEvent: TypeAlias = Withdraw | Restore | Notice


class EventSource(Protocol):
    """Events that are not in the trace, such as outages of machines.

    Like a policy's state, that of a source must survive pickling and deep copies.
    """

    def next_event(self, now: Tick) -> OutsideEvent | None:
        """The next event, at `now` or later; None if there is none.

        The engine asks once at the start, and then after each event. The `at` of events must never
        decrease.
        """
        ...
