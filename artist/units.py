"""Units and the only conversions between them.

Simulated time is counted in integer **ticks of one nanosecond**, so that sums
which should coincide do. Outside the engine times are floats in seconds.
Bandwidths are in ASTRA-sim's unit, 2**30 bytes per second. Users may write bandwidths, latencies
and amounts of data with a unit: `100Gbit/s`, `2us`, `565MB`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import gcd
from types import MappingProxyType
from typing import Final

Tick = int
"""A point in simulated time, or a duration, in nanoseconds."""

TICKS_PER_S: Final = 1_000_000_000
MIB = 2**20
GIB = 2**30
GIB_MIB: Final = 1024
CORE_MILLI: Final = 1000
"""Thousandths of a CPU core, in which cores are counted."""
GPU_MILLI: Final = 1000
"""Thousandths of a GPU, in which shares of GPUs are counted."""
MOST_CORES: Final = 10**6
MOST_GIB: Final = 10**6
"""A million cores and a pebibyte of memory: what no machine has, and no job needs."""

LAST_TICK: Tick = 2**63 - 1
"""Where simulated time ends, 292 years: columns of ticks are signed 64-bit integers."""

# A lease ends at the end of an iteration, and no training step that is worth a lease takes less.
SHORTEST_LEASE_S = 1e-3

# Largest time accepted at the border: a float of this many seconds still
# distinguishes microseconds, and its ticks fit a signed 64-bit column.
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


def clock_text(tick: Tick) -> str:
    """Ticks as hours, minutes below one, or seconds below a minute, to three places.

    >>> [clock_text(value * TICKS_PER_S) for value in (5400, 600, 45)]
    ['1.5 h', '10 min', '45 s']
    """
    value, unit = seconds(tick), "s"
    if value >= 3600.0:
        value, unit = value / 3600.0, "h"
    elif value >= 60.0:
        value, unit = value / 60.0, "min"
    return f"{value:,.3f}".rstrip("0").rstrip(".") + f" {unit}"


def bytes_per_ns(bandwidth_gib_per_s: float) -> float:
    """GiB/s to bytes per nanosecond, in ASTRA-sim's order of operations.

    The order matters: it decides results at integer boundaries.
    """
    return bandwidth_gib_per_s * GIB / 1e9


# Vendors count networks in powers of ten; a byte has 8 bits (IEC 80000-13).
_BITS = {"M": 10**6, "G": 10**9, "T": 10**12}
BANDWIDTH_UNITS: Mapping[str, Fraction] = MappingProxyType(
    {f"{k}{bit}": Fraction(n, 8 * GIB) for bit in ("bit/s", "b/s", "bps") for k, n in _BITS.items()}
    | {f"{k}{byte}": Fraction(n, GIB) for byte in ("B/s", "Bps") for k, n in _BITS.items()}
    | {"MiB/s": Fraction(MIB, GIB), "GiB/s": Fraction(1), "TiB/s": Fraction(1024)}
)
"""Unit of a bandwidth -> GiB/s."""

LATENCY_UNITS: Mapping[str, Fraction] = MappingProxyType(
    # Unicode has two signs for micro.
    {"ns": Fraction(1)}
    | dict.fromkeys(("us", "\u00b5s", "\u03bcs"), Fraction(1000))
    | {"ms": Fraction(10**6), "s": Fraction(10**9)}
)
"""Unit of a latency -> ns."""

TIME_UNITS: Mapping[str, Fraction] = MappingProxyType(
    {"ms": Fraction(1, 1000), "s": Fraction(1), "min": Fraction(60), "h": Fraction(3600)}
    | {"d": Fraction(86400)}
)
"""Unit of a time that a user writes -> s."""

SIZE_UNITS: Mapping[str, Fraction] = MappingProxyType(
    {f"{k}B": Fraction(1000**power) for power, k in enumerate(("", "k", "M", "G", "T", "P", "E"))}
    | {f"{k}iB": Fraction(1024**power) for power, k in enumerate(("K", "M", "G", "T", "P"), 1)}
)
"""Unit of an amount of data -> bytes."""

# Every dialect of regular expressions reads these signs alike, with and without Unicode.
_BLANK = r"[\t-\r ]*"
_DIGITS = r"([0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE]([+-]?[0-9]{1,2}))?"
_NUMBER = f"{_BLANK}{_DIGITS}{_BLANK}"
_QUANTITY = re.compile(rf"{_NUMBER}([^\d\s]*){_BLANK}", re.ASCII)

TIME_PATTERN = rf"^{_NUMBER}(?:{'|'.join(TIME_UNITS)}){_BLANK}$"
"""What `seconds_of` reads, for JSON Schema."""


def quantity(text: str, units: Mapping[str, Fraction]) -> tuple[Fraction, str] | None:
    """A number with its unit, exactly: the number and the unit; None if the text is neither.

    The unit is empty if the text has none.

    >>> quantity("2.5 us", LATENCY_UNITS)
    (Fraction(5, 2), 'us')
    """
    match = _QUANTITY.fullmatch(text)
    if match is None or (match[3] and match[3] not in units):
        return None
    return Fraction(match[1]) * Fraction(10) ** int(match[2] or 0), match[3]


def seconds_of(text: str) -> float | None:
    """A time with its unit in seconds; None if the text is none.

    >>> seconds_of("1.5 h"), seconds_of("90")
    (5400.0, None)
    """
    read = quantity(text, TIME_UNITS)
    return in_base_unit(*read, TIME_UNITS) if read and read[1] else None


_LENGTH = re.compile(r"(?:(\d{1,9})-)?(?:(\d{1,9}):)?(\d{1,9}):(\d\d)(?:\.\d+)?", re.ASCII)

LENGTH = "a length of time such as 1-02:03:04, minutes and seconds up to 59"
"""What messages expect that `length_s` reads."""


def length_s(text: str) -> int | None:
    """Seconds of a length of time as Slurm prints it, `[D-][HH:]MM:SS`; None if it is none.

    `00:54:99` is none: a row whose columns slipped, or hundredths of a second.
    Source: sacct(1) of Slurm 22.05, Elapsed.

    >>> length_s("1-02:03:04"), length_s("02:00"), length_s("2 h"), length_s("00:54:99")
    (93784, 120, None, None)
    """
    match = _LENGTH.fullmatch(text)
    if match is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    if max(minutes, seconds) > 59:
        return None
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def in_base_unit(number: Fraction, unit: str, units: Mapping[str, Fraction]) -> float:
    """A number of a unit as a number of the base unit (GiB/s or ns), rounded once.

    >>> in_base_unit(Fraction(100), "Gbit/s", BANDWIDTH_UNITS)
    11.641532182693481
    """
    return float(number * units[unit])


def from_base_unit(value: float, unit: str, units: Mapping[str, Fraction]) -> float:
    """A number of the base unit (GiB/s or ns) as a number of another unit."""
    return float(Fraction(value) / units[unit])


def bandwidth_texts(gib_per_s: float) -> tuple[str, str, str]:
    """A bandwidth in the three units that people use, with four digits.

    >>> bandwidth_texts(11.641532182693481)
    ('100 Gbit/s', '12.5 GB/s', '11.64 GiB/s')
    """
    gbit, gb, gib = (
        f"{_four_digits(from_base_unit(gib_per_s, unit, BANDWIDTH_UNITS))} {unit}"
        for unit in ("Gbit/s", "GB/s", "GiB/s")
    )
    return gbit, gb, gib


def counted(count: int, noun: str) -> str:
    """`1 run`, `1,200 runs`. `noun` is one whose plural ends in s."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def size_text(size_bytes: int) -> str:
    """An amount of data in the unit that keeps the number short.

    >>> size_text(565_000_000), size_text(7_500_000_000_000), size_text(0)
    ('565 MB', '7.5 TB', '0 B')
    """
    power = min(max((len(str(size_bytes)) - 1) // 3, 0), 6)
    return f"{_four_digits(size_bytes / 1000**power)} {('', 'k', 'M', 'G', 'T', 'P', 'E')[power]}B"


def latency_text(ns: float) -> str:
    """A latency in the unit that keeps the number short.

    >>> latency_text(50000), latency_text(936.25), latency_text(0)
    ('50 us', '936.2 ns', '0 ns')
    """
    unit = "ms" if ns >= 1e6 else "us" if ns >= 1e3 else "ns"
    return f"{_four_digits(from_base_unit(ns, unit, LATENCY_UNITS))} {unit}"


def _four_digits(value: float) -> str:
    """Four significant digits, without an exponent where the number has at most 15 digits."""
    rounded = float(f"{value:.4g}")
    return f"{rounded:.15g}"


def ratio_text(ratio: float) -> str:
    """A ratio to one, as oversubscription is written.

    >>> ratio_text(2.0), ratio_text(1.0001), ratio_text(0.0928)
    ('2:1', '1:1', '0.0928:1')
    """
    return f"{ratio:.3g}:1"
