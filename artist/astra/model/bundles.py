"""What handling messages costs an NPU, once they have arrived or before they leave."""

from __future__ import annotations

from dataclasses import dataclass

from artist.astra.model.agenda import Action, Clock


@dataclass(frozen=True, slots=True)
class Delays:
    """The endpoint delay and the local memory bandwidth of every NPU."""

    endpoint_ns: int
    memory_bytes_per_s: float

    def reduction_ns(self, size_bytes: int) -> int:
        """Reducing writes the bytes once and reads them twice, each truncated."""
        return 3 * int(size_bytes / self.memory_bytes_per_s * 1e9)

    def are_nothing(self, size_bytes: int) -> bool:
        """Whether handling so many bytes takes no time, reduced or not."""
        return self.endpoint_ns == self.reduction_ns(size_bytes) == 0


class Bundles:
    """Handles the bundles of one NPU."""

    def __init__(self, clock: Clock, delays: Delays) -> None:
        self._clock = clock
        self._delays = delays

    @property
    def now_ns(self) -> int:
        """The time."""
        return self._clock.now_ns

    def handle(self, reduced_bytes: int | None, action: Action) -> None:
        """Perform `action` after the endpoint delay and, if there are any, reducing the bytes."""
        if reduced_bytes is None:
            self._clock.plan(self._delays.endpoint_ns, action)
            return
        reduction_ns = self._delays.reduction_ns(reduced_bytes)
        self._clock.plan(self._delays.endpoint_ns, lambda: self._clock.plan(reduction_ns, action))
