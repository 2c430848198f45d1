"""A budget of wall time for many runs: when it is over, no other run begins."""

from __future__ import annotations

import re
import time

from artist.errors import ConfigError, shortened

_UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0}
_TIME = re.compile(r"(\d+(?:\.\d+)?) *(s|min|h)")


class TimeBudget:
    """Calls say whether it is not over yet. It begins when it is made."""

    def __init__(self, text: str) -> None:
        """`text` is a time such as `90s`, `10min` or `2h`.

        Raises:
            ConfigError: it is none, or nothing.
        """
        match = _TIME.fullmatch(text.strip())
        if match is None or not float(match[1]):
            raise ConfigError(
                f"--budget {shortened(text)}: expected a time such as 10min (s, min, h), or with "
                "--until a number of replicates"
            )
        self._ends = time.monotonic() + float(match[1]) * _UNITS[match[2]]

    def __call__(self) -> bool:
        """Whether another run may begin."""
        return time.monotonic() < self._ends
