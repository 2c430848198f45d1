"""What an NPU does with the bytes of one message: the endpoint delay, then the reduction.

ASTRA-sim calls the bytes that are handled together a *bundle*. With the endpoint delay e and
the local memory bandwidth B,

    time of a bundle            e
    time of a reduced bundle    e + R(m),  R(m) = 3 floor(m / B)

Nothing here says when a message is sent or how long it travels.
"""

from __future__ import annotations

from dataclasses import dataclass

from artist.astra.messages.event_order import Action, Clock


@dataclass(frozen=True, slots=True)
class Delays:
    """The endpoint delay and the local memory bandwidth, which are the same for every NPU."""

    endpoint_ns: int
    memory_bytes_per_s: float

    def reduction_ns(self, size_bytes: int) -> int:
        """Time to reduce some bytes: two reads and one write, each truncated to nanoseconds."""
        return 3 * int(size_bytes / self.memory_bytes_per_s * 1e9)

    def are_nothing(self, size_bytes: int) -> bool:
        """Whether handling so many bytes takes no time, with or without a reduction."""
        return self.endpoint_ns == self.reduction_ns(size_bytes) == 0


class Bundles:
    """Handles the bundles of one NPU. Bundles do not wait for each other."""

    def __init__(self, clock: Clock, delays: Delays) -> None:
        self._clock = clock
        self._delays = delays

    @property
    def now_ns(self) -> int:
        """The time."""
        return self._clock.now_ns

    def handle(self, reduced_bytes: int | None, action: Action) -> None:
        """Perform `action` after the endpoint delay, and after the reduction if bytes are given."""
        if reduced_bytes is None:
            self._clock.plan(self._delays.endpoint_ns, action)
            return
        # Two events, not one after the sum of both times: ASTRA-sim plans the reduction only
        # when the delay is over, which decides its place among events of the same instant.
        reduction_ns = self._delays.reduction_ns(reduced_bytes)
        self._clock.plan(self._delays.endpoint_ns, lambda: self._clock.plan(reduction_ns, action))
