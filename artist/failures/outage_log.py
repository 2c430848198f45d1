"""A log of outages, as operators keep it: CSV with the columns `unit`, `from` and `until`.

unit,from,until
machine 3,100,7300
rack 0,90000,93600

Times are seconds of simulated time. A unit is `KIND NUMBER`, as in a file of failures.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from artist.errors import TraceError, shortened
from artist.failures.checkpoints import SHORTEST_S
from artist.io.csv_rows import csv_rows
from artist.io.reading import decode, read_bytes
from artist.units import MAX_TIME_S, seconds_of

COLUMNS = ("unit", "from", "until")

_UNIT = re.compile(r"(?P<kind>\S+) +(?P<number>\d{1,9})", re.ASCII)


class LoggedOutage(NamedTuple):
    """A row of a log."""

    place: str
    """`FILE:LINE`."""
    kind: str
    unit: int
    from_s: float
    until_s: float


def read_outage_log(path: Path) -> list[LoggedOutage]:
    """The outages of a log, in the order of its rows.

    Raises:
        TraceError: an unreadable file, other columns or a bad row; names file and line.
    """
    columns, rows = csv_rows(path, decode(path, read_bytes(path)))
    if sorted(columns) != sorted(COLUMNS):
        raise TraceError(
            f"{path}:1: columns {shortened(', '.join(columns))}, expected unit, from and until; "
            "rename the columns"
        )
    return [_outage(where, cells) for where, cells in rows]


def _outage(where: str, cells: Mapping[str, str]) -> LoggedOutage:
    unit = _UNIT.fullmatch(cells["unit"])
    if unit is None:
        raise TraceError(
            f"{where}: unit {shortened(cells['unit'])}, expected a kind and a number from 0, as in "
            "machine 3"
        )
    from_s, until_s = (_seconds(where, name, cells[name]) for name in ("from", "until"))
    if until_s - from_s < SHORTEST_S:
        raise TraceError(
            f"{where}: until {until_s:g} is not after from {from_s:g}; correct one of them"
        )
    return LoggedOutage(where, unit["kind"], int(unit["number"]), from_s, until_s)


def _seconds(where: str, name: str, text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0.0 <= seconds <= MAX_TIME_S:
        read_s = seconds_of(text)
        remedy = "" if read_s is None or read_s > MAX_TIME_S else f"; write {read_s:.15g}"
        raise TraceError(
            f"{where}: {name} {shortened(text)}, expected seconds since the start of the "
            f"run{remedy}"
        )
    return seconds
