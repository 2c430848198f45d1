"""Numbers as the page, the terminal and the sentences of verdicts write them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from artist.units import counted
from artist.workload.job import UNKNOWN_MODEL

HOUR = 3600.0
DAY = 24 * HOUR


class DisplayUnit(NamedTuple):
    """A unit that numbers are shown in: its size in the unit of the files, and its name."""

    seconds: float
    name: str


_TIMES = (
    DisplayUnit(DAY, "d"),
    DisplayUnit(HOUR, "h"),
    DisplayUnit(60.0, "min"),
    DisplayUnit(1.0, "s"),
)
_MILLISECONDS = DisplayUnit(1e-3, "ms")
FEW_DAYS = 10.0
"""Times of jobs are in hours if the longest is shorter: in days, most would be fractions."""
NO_DAYS = math.inf
"""For times next to instants: instants are in hours, so these are too."""


def time_unit(largest_s: float, *, days: float = 3.0) -> DisplayUnit:
    """A unit that suits times up to `largest_s`: at least `days` days, or 3 hours or minutes."""
    least_s = {"d": days * DAY, "h": 3 * HOUR, "min": 180.0, "s": 0.0}
    return next((unit for unit in _TIMES if largest_s >= least_s[unit.name]), _TIMES[-1])


def time_text(value_s: float, unit: DisplayUnit | None = None) -> str:
    """A time with its unit, e.g. `3.5 h`: the unit given, or else one that suits it.

    Less than a day, or a tenth of another unit, has a smaller one: 17.9 h, not 0.745 d.
    """
    seconds, name = time_unit(value_s) if unit is None else unit
    if 0 < value_s < (1.0 if name == "d" else 0.1) * seconds:
        seconds, name = next((unit for unit in _TIMES if unit.seconds <= value_s), _MILLISECONDS)
    return f"{short(value_s / seconds)} {name}"


def column_unit(values_s: Iterable[float], *, days: float = 3.0) -> DisplayUnit:
    """The unit of a column of times: suits the largest, unless the least would read badly in it.

    No time of a column in days is shorter than a day. Zeros do not count.
    """
    found = [abs(value_s) for value_s in values_s if value_s]
    if not found:
        return _TIMES[-1]
    units = _TIMES[_TIMES.index(time_unit(max(found), days=days)) :]
    least_s = {"d": DAY, "h": 0.01 * HOUR, "min": 6.0, "s": 0.0}
    return next(unit for unit in units if min(found) >= least_s[unit.name])


def in_unit(value_s: float, unit: DisplayUnit) -> str:
    """A time in this unit, however small: `0.02 h`."""
    return f"{short(value_s / unit.seconds)} {unit.name}"


def gpu_hours_text(value_gpu_s: float) -> str:
    """GPU time in GPU-hours, e.g. `675.8 GPU-h`; less than one to four decimals: `0.0167 GPU-h`."""
    hours = round(value_gpu_s / HOUR, 4)
    return f"{f'{hours:,.1f}' if abs(hours) >= 1 else f'{hours:g}'} GPU-h"


def job_text(job: str, model: str, gpus: int) -> str:
    """A job with its model, if the trace names one, and its GPUs.

    >>> job_text("7", "gpt2", 4), job_text("7", "unknown", 1)
    ('7 (gpt2, 4 GPUs)', '7 (1 GPU)')
    """
    return f"{job} ({'' if model == UNKNOWN_MODEL else f'{model}, '}{counted(gpus, 'GPU')})"


def plain(value: float) -> str:
    """A number as the tables show it, e.g. `1,234` or `0.125`."""
    if value == int(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3f}" if abs(value) >= 0.01 else f"{value:.3g}"


def short(value: float) -> str:
    """A number with three significant digits, e.g. `3.5` or `1,230`."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def percent(share: float) -> str:
    """A share in percent without the sign: whole numbers from 10 on, two digits below.

    From 99.5 on one decimal: 100 would be all.
    """
    if 0.995 <= share < 1 - 1e-9:
        return f"{min(99.9, 100 * share):.1f}"
    return f"{100 * share:,.0f}" if share >= 0.0995 else f"{100 * share:.2g}"


def level_text(level: float) -> str:
    """A level of confidence in percent without the sign: `95`, `98.3`; never 100."""
    return f"{min(99.9, round(100 * level, 1)):g}"


def listed(names: Sequence[str]) -> str:
    """The names as a part of a sentence: `a, b and c`; `a; b, d; and c` if one has a comma."""
    *first, last = names
    if any("," in name for name in names):
        return "; ".join([*first, f"and {last}"]) if first else last
    return f"{', '.join(first)} and {last}" if first else last
