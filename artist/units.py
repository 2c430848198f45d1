"""Units and the only conversions between them.

Simulated time is counted in integer **ticks of one nanosecond**, so that sums
which should coincide do. Outside the engine times are floats in seconds.
Bandwidths are in ASTRA-sim's unit, 2**30 bytes per second.
"""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache
from math import gcd

Tick = int
"""A point in simulated time, or a duration, in nanoseconds."""

TICKS_PER_S = 1_000_000_000
MIB = 2**20
GIB = 2**30

LAST_TICK: Tick = 2**63 - 1
"""Where simulated time ends, 292 years: columns of ticks are signed 64-bit integers."""

# A lease ends at the end of an iteration, and no training step that is worth a lease takes less.
SHORTEST_LEASE_S = 1e-3

# Largest time accepted at the border: a float of this many seconds still tells
# microseconds apart, and its ticks fit a signed 64-bit column.
MAX_TIME_S = 4e9


def ticks(seconds: float) -> Tick:
    """Seconds to ticks, rounded half to even."""
    return round(seconds * TICKS_PER_S)


@lru_cache(maxsize=1024)
def exact_ticks(seconds: float) -> tuple[int, int]:
    """Seconds to ticks without rounding: numerator and denominator, in lowest terms.

    The exact value of a float is the decimal number that it prints as, so that three times 0.1 s
    are 0.3 s.
    """
    num, den = Decimal(repr(seconds)).as_integer_ratio()
    shared = gcd(TICKS_PER_S, den)
    return num * (TICKS_PER_S // shared), den // shared


def seconds(tick: Tick) -> float:
    """Ticks to seconds."""
    return tick / TICKS_PER_S


def seconds_text(tick: Tick) -> str:
    """Ticks as seconds with their unit, to the millisecond.

    >>> seconds_text(3_600_500_000_000)
    '3,600.5 s'
    """
    return f"{seconds(tick):,.3f}".rstrip("0").rstrip(".") + " s"


def bytes_per_ns(bandwidth_gib_per_s: float) -> float:
    """GiB/s to bytes per nanosecond, in ASTRA-sim's order of operations.

    The order matters: it decides results at integer boundaries.
    """
    return bandwidth_gib_per_s * GIB / 1e9
