"""A budget of wall time for many runs: when it is over, no other run begins."""

from __future__ import annotations

import time

from artist.errors import ConfigError, shortened
from artist.units import TIME_UNITS, seconds_of


class TimeBudget:
    """Calls say whether it is not over yet. It begins when it is made."""

    def __init__(self, text: str) -> None:
        """`text` is a time such as `90s`, `10min` or `2h`.

        Raises:
            ConfigError: it is none, or nothing.
        """
        length_s = seconds_of(text)
        if not length_s:
            raise ConfigError(
                f"--budget {shortened(text)}: expected a time such as 10min "
                f"({', '.join(TIME_UNITS)}), or with --until a number of replicates"
            )
        self.text, self.length_s = text, length_s
        self._ends = time.monotonic() + length_s

    @property
    def left_s(self) -> float:
        """Seconds until it is over; 0 after that."""
        return max(0.0, self._ends - time.monotonic())

    def __call__(self) -> bool:
        """Whether another run may begin."""
        return time.monotonic() < self._ends
