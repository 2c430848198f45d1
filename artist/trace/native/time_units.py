"""Times that are not in seconds: hours, milliseconds, dates. They become seconds."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Literal, TypeAlias, get_args
from zoneinfo import ZoneInfo

from artist.errors import ConfigError, shortened
from artist.io.reading import as_float
from artist.units import length_s

Unit: TypeAlias = Literal["us", "ms", "s", "min", "h", "d", "date", "day-first", "month-first"]

UNITS: tuple[str, ...] = get_args(Unit)

DATE = "date"

DATES: Mapping[str, bool | None] = {DATE: None, "day-first": True, "month-first": False}
"""Units of dates -> whether the day comes before the month; None if the cells show it."""

_SECONDS = {
    "us": Decimal("1e-6"),
    "ms": Decimal("1e-3"),
    "s": Decimal(1),
    "min": Decimal(60),
    "h": Decimal(3600),
    "d": Decimal(86400),
}

ARRIVALS = ("arrival_s", "submit_time")
"""The columns that may hold dates; the other columns of times hold lengths."""

UNIX_TIMES_S = 1e8
"""March 1973 as a Unix time, three years as a span. Arrivals that are all later are Unix times."""

MS_FROM, US_FROM = 1e11, 1e14
"""Larger Unix times are in ms or us: in seconds they would lie thousands of years ahead."""

_HOURS = re.compile(r"(\d{1,9}-)?\d{1,9}:\d\d?:\d\d(\.\d+)?", re.ASCII)

_ONE_COLON = re.compile(r"(\d{1,9}):(\d\d)", re.ASCII)

_CLOCK = re.compile(r"(\d+ days?,? )?\d+:\d{2}(:\d{2}(\.\d*)?)?", re.ASCII)

_DAY_AND_MONTH = re.compile(r"(\d{1,2})([./])(\d{1,2})\2(\d{4})\b(.*)", re.ASCII)

# Longer texts are not times.
_LONGEST = 60

_EPOCH = datetime(1970, 1, 1)


def scaled(value: float, unit: str) -> float:
    """A number of units in seconds: 1.1 h are 3960 s, which floats would miss.

    >>> scaled(1.1, "h"), 1.1 * 3600
    (3960.0, 3960.0000000000005)
    """
    if not math.isfinite(value):
        return value
    return float(Decimal(repr(value)) * _SECONDS[unit])


def moment_s(text: str) -> float | None:
    """Seconds since 1970 of a local time as in `2020-06-09 18:41:01`; None for other text."""
    moment = _moment(text)
    return None if moment is None or moment.tzinfo else (moment - _EPOCH).total_seconds()


def zoned_s(text: str) -> float | None:
    """Seconds since 1970 of a time with its zone, `2020-06-09T18:41:01Z`; None for other text."""
    moment = _moment(text)
    try:
        return None if moment is None or not moment.tzinfo else moment.timestamp()
    except OverflowError:  # a zone can take the first and last day of time beyond it
        return None


def clock_s(cell: object) -> float:
    """Seconds of a length of time with hours, `[D-]HH:MM:SS`; NaN for another cell.

    `1:30` could be minutes or hours, so it is none.
    """
    text = str(cell).strip()[:_LONGEST]
    seconds = length_s(text) if text.count(":") == 2 else None
    return math.nan if seconds is None else float(seconds)


def unix_zero_s(first_s: float) -> float:
    """What to subtract from arrivals: the first of them if they are Unix times, else 0."""
    return first_s if first_s >= UNIX_TIMES_S else 0.0


def is_date(text: str) -> bool:
    """Whether a text is a date, with or without a time and a zone.

    >>> is_date("2020-06-09 18:41:01Z"), is_date("18:41:01"), is_date("20200609")
    (True, False, False)
    >>> is_date("13.06.2020"), is_date("6/13/2020 18:41"), is_date("13.13.2020")
    (True, True, False)
    """
    text = text.strip()
    return not text.isdigit() and any(
        _moment(iso) is not None for iso in (text, _iso(text, True), _iso(text, False))
    )


def time_remedy(cell: object, column: str) -> str:
    """What to do about a cell of a column of times that is not a number of seconds.

    >>> time_remedy("1 s", "duration")
    'correct this row'
    """
    text = str(cell).strip()[:_LONGEST]
    known = f"--units reads numbers in {', '.join(unit for unit in UNITS if unit not in DATES)}"
    if column in ARRIVALS and as_float(cell) >= MS_FROM:
        unit = "us" if as_float(cell) >= US_FROM else "ms"
        return f"read Unix times in {unit} with --units {column}={unit}"
    if column in ARRIVALS and is_date(text):
        return f"read dates such as 2020-06-09 18:41:01 with --units {column}=date"
    if column in ARRIVALS and _CLOCK.fullmatch(text):
        return (
            f"{known} ({column}=h), and dates with a time such as 2020-06-09 18:41:01 "
            f"({column}=date); write one of these"
        )
    one_colon = _ONE_COLON.fullmatch(text)
    if one_colon and int(one_colon[2]) <= 59:
        hours, minutes = divmod(int(one_colon[1]), 60)
        return (
            "before one colon stand hours or minutes: "
            f"write {text}:00 or {hours:02}:{minutes:02}:{one_colon[2]}"
        )
    if (one_colon or _HOURS.fullmatch(text)) and length_s(text) is None:
        return "minutes and seconds go up to 59: correct this row"
    if is_date(text) or _CLOCK.fullmatch(text):
        return f"{known} ({column}=h), and lengths such as 1-02:03:04; only arrivals can be dates"
    return "correct this row"


def reader_of_dates(texts: Sequence[str], day_first: bool | None) -> Callable[[str], float | None]:
    """A reader for the dates of a column: with zones if the first has one, else without.

    `day_first` says whether the day comes before the month; None if the cells have to show it. In
    dates with dots, such as `13.06.2020`, the day comes first. In dates such as `6/13/2020`, the
    day is the part that exceeds 12 in some row; if no row shows it, no date is read.
    """
    day_first = _day_first(texts) if day_first is None else day_first
    if day_first is None:
        return lambda text: None
    first = _iso(texts[0], day_first) if texts else ""
    read = moment_s if zoned_s(first) is None else zoned_s
    return lambda text: read(_iso(text, day_first))


def day_and_month(text: str) -> re.Match[str] | None:
    """The parts of a date such as `6/7/2020`, where either may be the day; else None."""
    return _DAY_AND_MONTH.fullmatch(text.strip())


def order_is_unknown(texts: Sequence[str]) -> bool:
    """Whether the dates of a column do not show which part is the day, as in 6/7/2020."""
    return _day_first(texts) is None


def _day_first(texts: Sequence[str]) -> bool | None:
    """Whether the day comes before the month; None if no row shows it, or two contradict."""
    parts = [match for text in texts if (match := day_and_month(text))]
    if all(part[2] == "." for part in parts):
        return True
    first, second = (any(int(part[index]) > 12 for part in parts) for index in (1, 3))
    return None if first == second else first


def _iso(text: str, day_first: bool) -> str:
    """A date that begins with its day or month as `2020-06-13...`; other texts unchanged."""
    match = day_and_month(text)
    if match is None:
        return text
    one, _, other, year, rest = match.groups()
    day, month = (one, other) if day_first else (other, one)
    return f"{year}-{int(month):02}-{int(day):02}{rest}"


def _moment(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def zone(name: str) -> ZoneInfo:
    """The time zone with this name.

    Raises:
        ConfigError: there is none.
    """
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as cause:
        raise ConfigError(
            f"--time-zone {shortened(name)}: no such zone, expected one such as Europe/Berlin"
        ) from cause
