"""Times that are not in seconds: hours, milliseconds, dates. They become seconds."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Literal, TypeAlias, get_args

Unit: TypeAlias = Literal["us", "ms", "s", "min", "h", "d", "date"]

UNITS: tuple[str, ...] = get_args(Unit)

DATE = "date"

_SECONDS = {
    "us": Decimal("1e-6"),
    "ms": Decimal("1e-3"),
    "s": Decimal(1),
    "min": Decimal(60),
    "h": Decimal(3600),
    "d": Decimal(86400),
}

ARRIVALS = ("arrival_s", "submit_time")
"""The columns that may hold dates; the other times are lengths."""

_CLOCK = re.compile(r"(\d+ days?,? )?\d+:\d{2}(:\d{2}(\.\d*)?)?", re.ASCII)

# No text of a time is longer.
_LONGEST = 60

_EPOCH = datetime(1970, 1, 1)


def scaled(value: float, unit: str) -> float:
    """So many of a unit, in seconds: 1.1 h are 3960 s, which floats would miss.

    >>> scaled(1.1, "h"), 1.1 * 3600
    (3960.0, 3960.0000000000005)
    """
    if not math.isfinite(value):
        return value
    return float(Decimal(repr(value)) * _SECONDS[unit])


def moment_s(text: str) -> float | None:
    """Seconds since 1970 of a local time as in `2020-06-09 18:41:01`; None if it is none."""
    moment = _moment(text)
    return None if moment is None or moment.tzinfo else (moment - _EPOCH).total_seconds()


def zoned_s(text: str) -> float | None:
    """Seconds since 1970 of a time with its zone, `2020-06-09T18:41:01Z`; None if it is none."""
    moment = _moment(text)
    try:
        return None if moment is None or not moment.tzinfo else moment.timestamp()
    except OverflowError:  # a zone can take the first and last day of time beyond it
        return None


def is_date(text: str) -> bool:
    """Whether a text is a date, with or without a time and a zone.

    >>> is_date("2020-06-09 18:41:01Z"), is_date("18:41:01"), is_date("20200609")
    (True, False, False)
    """
    return not text.strip().isdigit() and _moment(text.strip()) is not None


def time_remedy(cell: object, column: str) -> str:
    """What to do about a cell of a column of times that is not a number of seconds.

    >>> time_remedy("1 s", "duration")
    'correct this row'
    """
    text = str(cell).strip()[:_LONGEST]
    known = f"--units reads numbers in {', '.join(unit for unit in UNITS if unit != DATE)}"
    if column in ARRIVALS and is_date(text):
        return f"read dates as in 2020-06-09 18:41:01 with --units {column}=date"
    if column in ARRIVALS and _CLOCK.fullmatch(text):
        return (
            f"{known} ({column}=h), and dates with a time as in 2020-06-09 18:41:01 "
            f"({column}=date); write one of these"
        )
    if is_date(text) or _CLOCK.fullmatch(text):
        return f"{known} ({column}=h), not clock times or dates: only arrivals can be dates"
    return "correct this row"


def reader_of_dates(texts: Sequence[str]) -> Callable[[str], float | None]:
    """How to read the dates of a column: with zones if the first has one, else without."""
    return moment_s if not texts or zoned_s(texts[0]) is None else zoned_s


def _moment(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None
