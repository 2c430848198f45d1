"""Events that are not in the trace: GPUs leave service, come back, or will leave soon."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias

from artist.cluster.placement import Placement
from artist.units import Tick


@dataclass(frozen=True, slots=True)
class Outage:
    """Why GPUs leave service, and what that does to the jobs on them.

    `kind` and `unit` say what fails or is maintained: `machine` 3, the `rack` 0, the `link` 5 (the
    unit whose uplink it is), the `gpu` 17. `until` is when it will be back.
    """

    kind: str
    unit: int
    until: Tick
    failed: bool = True
    """Jobs fall back to their last checkpoint. Else, as at maintenance, they save and lose no
    whole iteration."""

    @property
    def text(self) -> str:
        """What happened, in a few words: `machine 3 failed`."""
        return f"{self.kind} {self.unit} {'failed' if self.failed else 'in maintenance'}"


@dataclass(frozen=True, slots=True)
class Withdraw:
    """Take GPUs out of service at a tick.

    The free GPUs of a leaf leave first. If they are too few, jobs there lose all their GPUs, the
    latest arrival first, until enough are free. Not so with a `position`, which means one GPU: the
    GPUs in service of its leaf are those of running jobs, by handle, and then the free ones; the
    GPU at this position leaves, and the job that holds it loses all its GPUs.

    Without an `outage` jobs keep their whole iterations. GPUs that a `Notice` keeps out of service
    count as in service and free here.
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
    """Tell at a tick that whole leaves will leave service at `until`, with a `Withdraw`.

    From now on their free GPUs are out of service, and so is each GPU there that a job gives back.
    `outage` is what is to come.
    """

    at: Tick
    leaves: tuple[int, ...]
    until: Tick
    outage: Outage


OutsideEvent: TypeAlias = Withdraw | Restore | Notice


class EventSource(Protocol):
    """Events that are not in the trace, such as outages of machines.

    State that it keeps must survive pickling and deep copies, as a policy's.
    """

    def next_event(self, now: Tick) -> OutsideEvent | None:
        """The next event, at `now` or later; None if there is no other.

        The engine asks once at the start, and for the next one after handling each. The `at` of
        events never decreases.
        """
        ...
